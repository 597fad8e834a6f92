#!/usr/bin/env zsh
# What zsh completes: complete.zsh FOLDER LINE prints the words, a line each,
# that a shell on a pseudo-terminal offers for LINE and a tab.  FOLDER has the
# functions.  The shell is a real one with its completion system; only compadd,
# which shows words, is made to write them down, too.
emulate -L zsh
zmodload zsh/zpty
typeset -a words
folder=$1 line=$2 work=$(mktemp -d)

cat >$work/.zshrc <<END
fpath=(${(q)folder} \$fpath)
autoload -Uz compinit
compinit -u -d ${(q)work}/dump
zstyle ':completion:*' list-prompt ''
LISTMAX=100000
compadd() {
	if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
		builtin compadd "\$@"
		return
	fi
	typeset -a hits
	builtin compadd -A hits "\$@"
	[[ -z \$hits ]] || print -rl -- \$hits >>${(q)work}/words
	builtin compadd "\$@"
}
complete-and-end() {
	zle complete-word
	print -r -- done >>${(q)work}/end
}
zle-line-init() { print ready >${(q)work}/ready; }
zle -N zle-line-init
zle -N complete-and-end
bindkey '^T' complete-and-end
END
export ZDOTDIR=$work
zpty -b shell zsh -i
trap 'rm -rf $work' EXIT # not that of the shell above, which is a fork
wait_for() { # COMMAND: twenty seconds for it to be true
	local n
	for ((n = 0; n < 2000; n++)); do
		zpty -rt shell text >/dev/null 2>&1
		eval $1 && return
		sleep 0.01
	done
	print -u2 "complete.zsh: no answer within 20 s"
	exit 2
}
wait_for '[[ -e $work/ready ]]'
zpty -w -n shell "$line"$'\x14'
wait_for '[[ -e $work/end ]]'
[[ ! -e $work/words ]] || words=(${(f)"$(<$work/words)"})
zpty -d shell
(( ! $#words )) || print -rl -- ${(ou)words}
