/*
 * What would keep somebody from reading or using the page that is shown, by the
 * rules of WCAG 2.2 that a program can judge: a line each, '' for none.
 */
(() => {
const wrong = [];
const all = s => [...document.querySelectorAll(s)];
const say = (e, what) => wrong.push(e.tagName.toLowerCase() +
	(e.id ? '#' + e.id : '') + ' "' +
	(e.textContent || e.value || '').trim().slice(0, 30) + '": ' + what);
const style = (e, part) => getComputedStyle(e, part);

/* 1.4.3: contrast of text with all that lies behind it. */
const colour = c => {
	const v = c.match(/[0-9.]+/g).map(Number);
	return v.length > 3 ? v : [...v, 1];
};
const over = (top, low) =>
	[0, 1, 2].map(i => top[i] * top[3] + low[i] * (1 - top[3]));
const behind = e => {
	const layers = [];
	for (; e; e = e.parentElement)
		layers.unshift(colour(style(e).backgroundColor));
	return layers.reduce((low, top) => over(top, low), [255, 255, 255]);
};
const light = c => c.map(v => v / 255)
	.map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
	.reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) /
	(Math.min(light(a), light(b)) + 0.05);
const judge = (e, st) => {
	const size = parseFloat(st.fontSize), low = behind(e);
	const large = size >= 24 || (size >= 18.66 && st.fontWeight >= 700);
	const r = ratio(over(colour(st.color), low), low);
	if (r < (large ? 3 : 4.5))
		say(e, 'contrast of ' + r.toFixed(2));
};
const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const seen = new Set();
while (words.nextNode()) {
	const e = words.currentNode.parentElement;
	if (!words.currentNode.data.trim() || seen.has(e) ||
	    e.closest('script, style') || !e.checkVisibility())
		continue;
	seen.add(e);
	judge(e, style(e));
}
for (const e of all('input[placeholder]'))
	judge(e, style(e, '::placeholder'));

/* 1.3.1, 2.4.6: headings, landmarks, heads of tables. */
const steps = all('h1, h2, h3, h4');
if (steps.filter(h => h.tagName === 'H1').length !== 1 ||
    steps[0].tagName !== 'H1')
	say(document.body, 'not one h1, and first');
steps.forEach((h, i) => {
	if (i && h.tagName[1] - steps[i - 1].tagName[1] > 1)
		say(h, 'a level of headings is left out');
});
if (all('main').length !== 1)
	say(document.body, 'not one main');
for (const e of steps)
	if (!e.closest('main'))
		say(e, 'outside main');
for (const e of all('th:not([scope])'))
	say(e, 'a head of nothing');

/* 1.1.1, 2.4.2, 3.1.1, 4.1.1 */
for (const e of all('img:not([alt]), img[alt=""]'))
	say(e, 'no alt');
for (const e of document.images)
	if (!e.complete || !e.naturalWidth)
		say(e, 'a picture that does not load: ' + e.src);
if (!document.title || !document.documentElement.lang)
	say(document.body, 'no title or language');
const ids = all('[id]').map(e => e.id);
for (const e of all('[id]'))
	if (ids.indexOf(e.id) !== ids.lastIndexOf(e.id))
		say(e, 'two of this id');
for (const e of all('a[href^="#"]'))
	if (!ids.includes(decodeURIComponent(e.hash.slice(1))))
		say(e, 'leads nowhere');

/* 1.4.10: no second direction to scroll in; 2.1.1: what scrolls has focus. */
if (document.documentElement.scrollWidth > innerWidth)
	say(document.body, 'wider than the window: ' +
		document.documentElement.scrollWidth);
for (const e of all('body *'))
	if (/auto|scroll/.test(style(e).overflowX) &&
	    e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0)
		say(e, 'scrolls, out of reach of keys');

/* 2.5.8: 24 pixels for a finger. */
for (const e of all('button, input, summary, nav a'))
	if (e.checkVisibility() && e.getBoundingClientRect().height < 24)
		say(e, 'lower than 24 pixels');
return wrong.slice(0, 20).join('\n');
})()
