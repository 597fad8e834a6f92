#!/bin/sh
# t0-results report: one page without a network, opened by a real browser if there
# is one; tests/results/page.c uses it.
. tests/tap.sh
unset T0_DB
r=$T0_BUILD/t0-results
command -v gnuplot >/dev/null || skip_all 'gnuplot is not installed'
export T0_DB="$tmp/t0.db"
awk -v loss=0.1 -f tests/data/results/fixture.awk |
	sed 's/v_exp_f32/v_<b>\&amp;exp/' | "$r" import --quiet -
"$r" baseline accept 4 >/dev/null
"$r" gate --any-host >/dev/null
"$r" note add --status discard --hypothesis '<script>alert(1)</script>'

exits 0 'report' "$r" report "$tmp/report"
page=$tmp/report/index.html
has "$page" '<th scope="row">gates</th><td>' 'the summary is first'
has "$page" 'engine/qwen3-0.6b phase=decode' \
	'the worst offender is named'
has "$page" '7. bisect       SUSPECT' 'with its checklist'
has "$page" 'v_&lt;b>&amp;amp;exp' 'text is escaped'
has "$page" '&lt;script>alert' 'also from the ledger'
has "$page" 'dddddddddddd' 'runs are listed with their commit'
ok 'nothing is loaded from elsewhere' sh -c "! grep -E '(src|href)=\"[a-z]+:[^,]' \
	'$page' | grep -v 'data:,'"

# Every link and picture leads somewhere; every anchor exists.
grep -oE '(href|src)="[^"]*"' "$page" | sed 's/^[a-z]*="//;s/"$//' |
	sort -u >"$tmp/links"
missing=''
while read -r link; do
	case $link in
	data:,) ;;
	'#'*) grep -q "id=\"${link#?}\"" "$page" || missing="$missing $link" ;;
	*) [ -s "$tmp/report/$link" ] || missing="$missing $link" ;;
	esac
done <"$tmp/links"
is "$missing" '' 'every link leads somewhere'
ok 'there are links' [ "$(wc -l <"$tmp/links")" -gt 40 ]

browser=$(command -v chromium || command -v chromium-browser ||
	command -v google-chrome)
if [ -z "$browser" ]; then
	diag 'NO BROWSER: install chromium to have the page opened in one'
	skip 'no chromium: the page was not opened in a browser'
	plan_done
fi
# The page's own view of itself: the DOM after loading, errors on the console.
timeout 60 "$browser" --headless --no-sandbox --disable-gpu \
	--user-data-dir="$tmp/profile" --enable-logging=stderr --dump-dom \
	--virtual-time-budget=5000 "file://$page" >"$tmp/dom" 2>"$tmp/log"
is $? 0 'chromium opens the page'
has "$tmp/dom" '<h2 id="runs">' 'up to its end'
ok 'without an error on its console' sh -c "! grep CONSOLE '$tmp/log'"
# Pictures that do not load have no size of their own: ask with a script, in a
# copy of the page.
sed 's|</body>|<script>document.title = "broken:" + [].filter.call(\
document.images, i => !i.complete \|\| !i.naturalWidth).map(i => i.src)\
.join() + ";" + document.images.length</script></body>|' "$page" \
	>"$tmp/report/asked.html"
sed 's|<script>document|<script>window.onload = () => { document|;s|</script></body>|}</script></body>|' \
	"$tmp/report/asked.html" >"$tmp/report/asked2.html"
timeout 60 "$browser" --headless --no-sandbox --disable-gpu \
	--user-data-dir="$tmp/profile" --dump-dom --virtual-time-budget=5000 \
	"file://$tmp/report/asked2.html" >"$tmp/dom" 2>/dev/null
has "$tmp/dom" '<title>broken:;12</title>' 'all twelve pictures are shown'
plan_done
