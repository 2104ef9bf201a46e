// The files to look at: those that the environment names, else those of the sample recording and, if the release
// binary is there, those of a recording of its own demo target. Opens no browser.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

const root = resolve(import.meta.dirname, '../../..');

/** Where this run keeps what it makes: the files if it made them, and the screenshots. */
export const workspace = process.env.RUNTAP_VIEW_SHOTS ?? mkdtempSync(join(tmpdir(), 'runtap-viewer-'));

/** The path of a program on PATH, or null. */
export function which(name) {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? null;
}

/**
 * Each source has a `name`, and either `make`, which returns the files `{speedscope, svg}`, or `skip`, the reason
 * why there are none. A file that is not named in the environment is null.
 */
export function sources() {
  const { RUNTAP_VIEW_SPEEDSCOPE: speedscope = null, RUNTAP_VIEW_SVG: svg = null } = process.env;
  if (speedscope || svg) {
    const given = (path) => path && resolve(path);
    return [{ name: 'given', make: async () => ({ speedscope: given(speedscope), svg: given(svg) }) }];
  }
  const binary = process.env.RUNTAP_BIN ?? join(root, 'target/release/runtap');
  return [
    which('cargo') ? { name: 'sample', make: sample } : { name: 'sample', skip: 'no cargo on PATH' },
    existsSync(binary)
      ? { name: 'demo', make: () => demo(binary) }
      : { name: 'demo', skip: 'no target/release/runtap (cargo build --release -p runtap)' },
  ];
}

/** The recording that examples/sample_files of runtap-sinks makes up. */
async function sample() {
  const folder = join(workspace, 'sample');
  run('cargo', ['run', '-q', '-p', 'runtap-sinks', '--example', 'sample_files', '--', folder]);
  return { speedscope: join(folder, 'sample.speedscope.json'), svg: join(folder, 'sample.svg') };
}

/** A recording of `runtap demo serve` by `runtap trace`. */
async function demo(binary) {
  const target = spawn(binary, ['demo', 'serve', '--seconds', '60'], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const pid = await readyPid(target);
    const output = join(workspace, 'demo.nettrace');
    run(binary, ['trace', '-p', pid, '--duration', '2s', '--to', 'speedscope', '--to', 'flamegraph', '-o', output]);
    return { speedscope: join(workspace, 'demo.speedscope.json'), svg: join(workspace, 'demo.svg') };
  } finally {
    target.kill();
    if (target.exitCode === null && target.signalCode === null) await once(target, 'exit');
  }
}

/** The number that the demo target prints as `pid N`, once it has said `ready`. */
async function readyPid(target) {
  let pid = null;
  for await (const line of createInterface({ input: target.stdout })) {
    const [word, value] = line.split(' ');
    if (word === 'pid') pid = value;
    if (word === 'ready' && pid) return pid;
  }
  throw new Error('the demo target ended before it was ready');
}

function run(program, args) {
  const { status, signal, error, stderr } = spawnSync(program, args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) {
    throw new Error(`${program} ${args.join(' ')}: ${error ?? signal ?? `exit ${status}`}\n${stderr ?? ''}`);
  }
}
