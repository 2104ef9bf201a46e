// Draws the report. The data is in the elements `head`, `index` and `details-N`; html/data.rs has its shape. Texts of
// tests become text nodes and nothing else.
'use strict';
(() => {
  const byId = (id) => document.getElementById(id);
  const data = (id) => JSON.parse(byId(id).textContent);
  const head = data('head');
  const { tests, classes } = data('index');

  const STATES = ['passed', 'failed', 'skipped', 'error', 'timeout', 'cancelled'];
  const [NAME, STATE, CLASS, MODULE, MICROS, FLAGS] = [0, 1, 2, 3, 4, 5];
  const [FLAKY, QUARANTINED] = [1, 2];
  // What a test is shown and filtered as.
  const KINDS = { failed: 'Failed', quarantined: 'In quarantine', flaky: 'Flaky', skipped: 'Skipped', passed: 'Passed' };
  const ICONS = { failed: '✕', quarantined: '✕', flaky: '↻', skipped: '–', passed: '✓' };
  // How many rows are drawn at a time, and how many tests are opened at the start if they failed.
  const PAGE = 100;
  const OPENED = 3;

  /** An element with classes, and with children that are elements or texts. */
  const make = (tag, className, ...children) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...children);
    return element;
  };

  const kindOf = (test) => {
    const state = STATES[test[STATE]];
    if (state === 'passed') return test[FLAGS] & FLAKY ? 'flaky' : 'passed';
    if (state === 'skipped') return 'skipped';
    return test[FLAGS] & QUARANTINED ? 'quarantined' : 'failed';
  };
  const kinds = tests.map(kindOf);
  // Texts to search in, made when the first search is.
  let haystack = null;

  const plural = (n, what) => `${n.toLocaleString('en')} ${what}${n === 1 ? '' : 's'}`;
  const time = (micros) => {
    if (micros < 1000) return `${micros} µs`;
    if (micros < 1e6) return `${Math.floor(micros / 1e3)} ms`;
    if (micros < 6e7) return `${(Math.floor(micros / 1e4) / 100).toFixed(2)} s`;
    return `${Math.floor(micros / 6e7)} min ${Math.floor(micros / 1e6) % 60} s`;
  };

  // --- Head -------------------------------------------------------------------------------------------------------

  const counts = { failed: 0, quarantined: 0, flaky: 0, skipped: 0, passed: 0 };
  for (const kind of kinds) counts[kind] += 1;
  const broken = head.modules.filter((module) => module.error !== null);

  const verdict = () => {
    const crashed = broken.length ? [`${plural(broken.length, 'test application')} did not complete successfully`] : [];
    const failed = counts.failed ? [`${counts.failed.toLocaleString('en')} of ${plural(tests.length, 'test')} failed`] : [];
    if (failed.length || crashed.length) return ['bad', [...failed, ...crashed].join(', ')];
    if (head.interrupted !== null) return ['bad', `Interrupted after ${plural(tests.length, 'test')}`];
    if (head.exit_code !== 0) return ['bad', tests.length ? `Ended with exit code ${head.exit_code}` : 'No tests ran'];
    return ['good', `${plural(counts.passed + counts.flaky, 'test')} passed`];
  };
  const [mood, words] = verdict();
  byId('verdict').className = mood;
  byId('verdict').textContent = words;
  const when = new Date(head.started).toLocaleString();
  byId('about').textContent =
    [head.duration, when, plural(head.modules.length, 'module'), head.machine].filter(Boolean).join(' · ');
  byId('command').textContent = head.command.length ? `$ ${head.command.join(' ')}` : '';
  for (const kind of Object.keys(KINDS)) {
    if (!counts[kind]) continue;
    const part = make('span', kind);
    part.style.flexGrow = counts[kind];
    byId('bar').append(part);
  }
  byId('bar').setAttribute('aria-label', Object.keys(KINDS).filter((k) => counts[k]).map((k) => `${KINDS[k]}: ${counts[k]}`).join(', '));

  if (head.interrupted !== null) byId('notices').append(make('div', 'notice', make('b', '', 'Interrupted: '), head.interrupted));
  else if (head.trouble !== null) byId('notices').append(make('div', 'notice', head.trouble));
  for (const module of broken) {
    const notice = make('div', 'notice', make('b', '', `${module.title} did not complete successfully`), make('div', 'message', module.error));
    for (const output of [module.stdout, module.stderr]) if (output) notice.append(make('pre', 'block', output));
    byId('notices').append(notice);
  }

  // --- A test -----------------------------------------------------------------------------------------------------

  const chunks = new Map();
  const detailsOf = (number) => {
    const chunk = Math.floor(number / head.chunk);
    if (!chunks.has(chunk)) chunks.set(chunk, data(`details-${chunk}`));
    return chunks.get(chunk)[number % head.chunk];
  };

  /** A value with what makes it differ from `other` marked. */
  const marked = (value, other) => {
    let from = 0;
    while (from < value.length && from < other.length && value[from] === other[from]) from += 1;
    let end = 0;
    const most = Math.min(value.length, other.length) - from;
    while (end < most && value.at(-1 - end) === other.at(-1 - end)) end += 1;
    const middle = value.slice(from, value.length - end);
    return [value.slice(0, from), ...(middle ? [make('mark', '', middle)] : []), value.slice(value.length - end)];
  };

  const comparison = ({ e, a }) => {
    const grid = make('div', 'compare');
    if (e !== undefined) grid.append(make('span', '', 'Expected'), make('pre', 'expected', ...marked(e, a ?? e)));
    if (a !== undefined) grid.append(make('span', '', 'Actual'), make('pre', 'actual', ...marked(a, e ?? a)));
    return grid;
  };

  /** What is to say of an attempt. */
  const execution = (attempt) => {
    const parts = [];
    const { r: reason, x: exceptions = [], o: stdout, w: stderr } = attempt;
    if (reason && reason !== exceptions[0]?.[1]) parts.push(make('div', 'message', reason));
    exceptions.forEach(([type, message, stack], i) => {
      const line = make('div', 'message', i ? '→ ' : '', message);
      if (type) line.append(message ? ' ' : '', make('span', 'type', type));
      parts.push(line);
      if (i === 0 && (attempt.e !== undefined || attempt.a !== undefined)) parts.push(comparison(attempt));
      if (stack) parts.push(make('pre', 'block', stack.replace(/^[ \t]+(?=at )/gm, '')));
    });
    if (!exceptions.length && (attempt.e !== undefined || attempt.a !== undefined)) parts.push(comparison(attempt));
    if (stdout) parts.push(make('h3', '', 'Standard output'), make('pre', 'block', stdout));
    if (stderr) parts.push(make('h3', '', 'Standard error'), make('pre', 'block', stderr));
    return parts;
  };

  const facts = (test, details) => {
    const list = make('dl', 'facts');
    const fact = (name, value) => value && list.append(make('dt', '', name), make('dd', '', value));
    fact('State', STATES[test[STATE]]);
    fact('Module', head.modules[test[MODULE]].title);
    fact('Class', classes[test[CLASS]]);
    fact('Declared', details.p);
    for (const [key, value] of details.t ?? []) fact(value ? key : 'Category', value || key);
    for (const [name, path] of details.f ?? []) fact('File', name === path ? path : `${name}: ${path}`);
    fact('Uid', details.u);
    return list;
  };

  const bodyOf = (number) => {
    const details = detailsOf(number);
    const body = make('div', 'body', ...execution(details));
    (details.h ?? []).forEach((attempt, i) => {
      const title = `Attempt ${i + 1}: ${STATES[attempt.s]} after ${attempt.d}`;
      body.append(make('details', 'attempt', make('summary', '', title), ...execution(attempt)));
    });
    body.append(facts(tests[number], details));
    return body;
  };

  const row = (number) => {
    const test = tests[number];
    const kind = kinds[number];
    const name = make('span', 'name', make('bdi', '', test[NAME]));
    const label = make('span', 'label', name);
    if (classes[test[CLASS]]) label.append(make('span', 'class', classes[test[CLASS]]));
    const icon = make('span', `icon ${kind}`, ICONS[kind]);
    icon.setAttribute('aria-label', KINDS[kind]);
    icon.setAttribute('role', 'img');
    const summary = make('summary', '', icon, label);
    const state = STATES[test[STATE]];
    if (kind === 'failed' && state !== 'failed') summary.append(make('span', 'badge', state));
    if (kind === 'flaky' || kind === 'quarantined') summary.append(make('span', 'badge', KINDS[kind].toLowerCase()));
    if (head.modules.length > 1) summary.append(make('span', 'module', head.modules[test[MODULE]].title));
    summary.append(make('span', 'time', kind === 'skipped' ? '' : time(test[MICROS])));
    const element = make('details', 'test', summary);
    const fill = () => element.children.length === 1 && element.append(bodyOf(number));
    element.addEventListener('toggle', () => element.open && fill());
    return element;
  };

  // --- The list ---------------------------------------------------------------------------------------------------

  const chosen = new Set();
  let shown = [];
  let drawn = 0;
  const sentinel = byId('more');

  const drawMore = () => {
    const rows = shown.slice(drawn, drawn + PAGE).map(row);
    byId('list').append(...rows);
    drawn += rows.length;
    return rows;
  };

  /** Draws as far as somebody has scrolled. An observer tells only of changes, so it begins anew after each page. */
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting) || drawn >= shown.length) return;
    drawMore();
    observer.unobserve(sentinel);
    observer.observe(sentinel);
  }, { rootMargin: '600px' });

  const orders = {
    state: null, // as they are in the file
    time: (a, b) => tests[b][MICROS] - tests[a][MICROS] || a - b,
    name: (a, b) => (tests[a][NAME] < tests[b][NAME] ? -1 : tests[a][NAME] > tests[b][NAME] ? 1 : a - b),
  };

  const update = () => {
    const words = byId('search').value.toLowerCase().split(/\s+/).filter(Boolean);
    const module = byId('module').value;
    if (words.length && !haystack) haystack = tests.map((test) => `${classes[test[CLASS]]} ${test[NAME]}`.toLowerCase());
    shown = [];
    for (let i = 0; i < tests.length; i += 1) {
      if (chosen.size && !chosen.has(kinds[i])) continue;
      if (module !== '' && tests[i][MODULE] !== Number(module)) continue;
      if (words.length && !words.every((word) => haystack[i].includes(word))) continue;
      shown.push(i);
    }
    const order = orders[byId('order').value];
    if (order) shown.sort(order);
    byId('list').replaceChildren();
    drawn = 0;
    drawMore();
    observer.unobserve(sentinel);
    observer.observe(sentinel);
    const all = shown.length === tests.length;
    byId('count').textContent = all ? plural(tests.length, 'test') : `${shown.length.toLocaleString('en')} of ${plural(tests.length, 'test')}`;
  };

  for (const kind of Object.keys(KINDS)) {
    if (!counts[kind]) continue;
    const button = make('button', kind, KINDS[kind], make('b', '', counts[kind].toLocaleString('en')));
    button.type = 'button';
    button.setAttribute('aria-pressed', 'false');
    button.addEventListener('click', () => {
      if (!chosen.delete(kind)) chosen.add(kind);
      button.setAttribute('aria-pressed', String(chosen.has(kind)));
      update();
    });
    byId('states').append(button);
  }
  const option = (value, text) => {
    const element = make('option', '', text);
    element.value = value;
    return element;
  };
  byId('module').append(option('', 'All modules'), ...head.modules.map((module, i) => option(String(i), module.title)));
  byId('module').hidden = head.modules.length < 2;
  for (const id of ['module', 'order']) byId(id).addEventListener('change', update);
  let pending = 0;
  byId('search').addEventListener('input', () => {
    clearTimeout(pending);
    pending = setTimeout(update, tests.length > 5000 ? 120 : 0);
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || /^(INPUT|SELECT)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    byId('search').focus();
  });

  // --- Modules ----------------------------------------------------------------------------------------------------

  const table = make('table', '');
  const cells = (tag, values) => make('tr', '', ...values.map((value) => (value instanceof Node ? value : make(tag, '', String(value)))));
  table.append(cells('th', ['Module', 'Tests', 'Passed', 'Failed', 'Skipped', 'Flaky', 'Exit code', 'Time']));
  for (const module of head.modules) {
    const first = make('td', '', module.title, make('small', '', module.path));
    for (const [level, text] of module.messages) first.append(make('small', level === 'error' ? 'failed' : '', `${level}: ${text}`));
    for (const [name, path] of module.artifacts) first.append(make('small', '', name === path ? path : `${name}: ${path}`));
    const { totals } = module;
    const skipped = totals.skipped + totals.quarantined;
    table.append(cells('td', [first, totals.total, totals.passed, module.failures, skipped, totals.flaky, module.exit_code ?? '–', module.duration]));
  }
  byId('modules').append(make('h2', '', 'Modules'), table);
  byId('foot').textContent = `${head.runner} · exit code ${head.exit_code}`;

  update();
  [...byId('list').children].slice(0, OPENED).forEach((element, i) => {
    element.open = kinds[shown[i]] === 'failed';
  });
})();
