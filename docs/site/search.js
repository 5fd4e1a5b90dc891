// Search in the names and texts of search-index.js. Without JavaScript the field stays hidden.
'use strict';
(() => {
  const shown = 12;
  const root = new URL('.', document.currentScript.src);
  const box = document.getElementById('search');
  const field = box.querySelector('input');
  const results = document.getElementById('results');

  // Lower is better: equal name, beginning of the name, part of the name, text.
  const rank = (entry, words) => {
    const name = entry[0].toLowerCase(), text = entry[3].toLowerCase(), first = words[0];
    if (!words.every(word => name.includes(word) || text.includes(word))) return -1;
    const bare = name.replace(/ \(.*/, '').replace(/^\$/, '');
    if (bare === first.replace(/^\$/, '')) return 0;
    if (name.startsWith(first)) return 1;
    return words.every(word => name.includes(word)) ? 2 : 3;
  };

  const item = ([name, kind, place, text]) => {
    const link = document.createElement('a'), line = document.createElement('li');
    link.href = new URL(place, root);
    for (const [tag, part] of [['strong', name], ['small', kind], ['span', text]])
      link.append(Object.assign(document.createElement(tag), {textContent: part}), ' ');
    line.append(link);
    return line;
  };

  const search = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = words.length === 0 ? [] : searchEntries
      .map(entry => [rank(entry, words), entry]).filter(([value]) => value >= 0)
      .sort((a, b) => a[0] - b[0] || a[1][0].length - b[1][0].length).slice(0, shown).map(([, entry]) => item(entry));
    if (words.length > 0 && found.length === 0)
      found.push(Object.assign(document.createElement('li'), {textContent: 'nothing found'}));
    results.replaceChildren(...found);
  };

  box.hidden = false;
  field.addEventListener('input', search);
  field.addEventListener('keydown', event => {
    if (event.key === 'Enter') results.querySelector('a')?.click();
    if (event.key === 'Escape') { field.value = ''; search(); }
    if (event.key === 'ArrowDown') { results.querySelector('a')?.focus(); event.preventDefault(); }
  });
  results.addEventListener('click', () => results.replaceChildren());
  document.addEventListener('keydown', event => {
    if (event.key === '/' && document.activeElement !== field) { field.focus(); event.preventDefault(); }
  });
})();
