#!/bin/sh
# t0-results report: one page without a network, in a real browser if there is
# one.
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
has "$tmp/dom" '<title>broken:;11</title>' 'all eleven pictures are shown'
# A press on a head sorts; what is typed leaves the rows that have it; and what
# is read stands out from what is behind it (WCAG 2.1, 1.4.3).
cat >"$tmp/script" <<'END'
<script>window.onload = () => {
const box = document.querySelector('#costs ~ div.scroll');
const rows = () => [...box.querySelectorAll('tr')].slice(1);
const names = () => rows().map(r => r.cells[0].textContent).join();
const sorted = rows().map(r => r.cells[0].textContent)
	.sort((x, y) => y.localeCompare(x)).join();
const button = box.querySelector('th button');
button.click(); button.click();
const sorts = names() === sorted;
const find = box.previousElementSibling;
find.value = rows()[0].cells[0].textContent; find.oninput();
const left = rows().filter(r => !r.hidden).every(r =>
	r.textContent.includes(find.value)) && rows().some(r => r.hidden);
const light = c => c.match(/[0-9.]+/g).slice(0, 3).map(v => v / 255)
	.map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
	.reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
const style = e => getComputedStyle(e);
const back = light(style(document.body).backgroundColor);
const low = [...document.querySelectorAll('p, td, th, a, h1, h2, h3')].filter(e => {
	const c = light(style(e).color);
	return (Math.max(c, back) + 0.05) / (Math.min(c, back) + 0.05) < 4.5;
}).length;
const steps = [...document.querySelectorAll('h1, h2, h3')].map(h => +h.tagName[1]);
const jumps = steps.filter((h, i) => i && h > steps[i - 1] + 1).length;
document.title = [sorts, left, low, jumps, document.images.length,
	[...document.images].filter(i => !i.alt).length].join(' ');
}</script>
END
sed "/<\/body>/{
r $tmp/script
}" "$page" >"$tmp/report/asked3.html"
for width in 1280 390; do
	timeout 60 "$browser" --headless --no-sandbox --disable-gpu \
		--user-data-dir="$tmp/profile" --dump-dom \
		--window-size=$width,900 --virtual-time-budget=5000 \
		"file://$tmp/report/asked3.html" >"$tmp/dom" 2>/dev/null
	has "$tmp/dom" '<title>true true 0 0 11 0</title>' \
		"$width wide: sorts, filters, is read, has its headings in order"
done
plan_done
