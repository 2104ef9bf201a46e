// Reads a coverage file of ours with a reader that is not. README.md says how to run this.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import jacoco from 'jacoco-parse';
import { binary, jvmRecording, run, which, workspace } from './lib/files.js';

const parse = promisify(jacoco.parseFile);

describe('coverage', { skip: !which('cargo') && 'no cargo on PATH' }, () => {
  test('JaCoCo: jacoco-parse finds every file, line and method', async () => {
    const folder = join(workspace, 'coverage');
    run('cargo', ['run', '-q', '-p', 'runtap-jvm', '--example', 'sample_coverage', '--', folder]);
    const files = await parse(join(folder, 'sample.jacoco.xml'));
    assert.deepEqual(
      files.map((file) => file.file),
      ['/Plain.java', 'shop/Dead.java', 'shop/Shop.java', 'shop/sub/Odd.java'],
    );
    const sum = (what, of) => files.reduce((total, file) => total + file[what][of], 0);
    assert.deepEqual([sum('lines', 'hit'), sum('lines', 'found')], [7, 11]);
    assert.deepEqual([sum('functions', 'hit'), sum('functions', 'found')], [7, 9]);
    assert.equal(sum('branches', 'found'), 0);
    const lines = Object.fromEntries(files[2].lines.details.map(({ line, hit }) => [line, hit]));
    assert.deepEqual(lines, { 3: 1, 6: 1, 7: 1, 8: 0, 11: 0, 12: 0, 20: 1 });
    const odd = files[3].functions.details.find((method) => method.name === 'a,b"&\'%c');
    assert.deepEqual([odd.line, odd.hit], [4, 1]);
    const never = files[2].functions.details.find((method) => method.name === 'never');
    assert.deepEqual([never.line, never.hit], [11, 0]);
  });
});

const recording = jvmRecording('v4_basic');
const missing = (!recording && 'no recordings (RUNTAP_SHARED)') || (!existsSync(binary) && `no ${binary}`);

test('JaCoCo: jacoco-parse finds what an original agent has sent', { skip: missing }, async () => {
  const path = join(workspace, 'v4_basic.jacoco.xml');
  run(binary, ['jvm', 'report', recording, '--coverage', `jacoco=${path}`]);
  const files = await parse(path);
  const found = files.map(({ file, lines, functions }) => [file, lines.hit, lines.found, functions.hit, functions.found]);
  assert.deepEqual(found.sort(), [
    ['demo/Counts.java', 28, 28, 18, 18],
    ['demo/Worker.java', 2, 2, 2, 2],
  ]);
  const counts = files.find(({ file }) => file === 'demo/Counts.java');
  assert.ok(counts.functions.details.some(({ name, line, hit }) => name === 'fib' && line === 4 && hit === 1));
});
