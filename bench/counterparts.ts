/** Programs of others to measure beside ours: on the PATH, or where `.ci/counterparts` installs them. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { Peer } from './figures.ts'
import { best } from './measure.ts'
import { pinned } from './rig.ts'

const folder = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'inlet-counterparts')
export const howToInstall = 'bash .ci/counterparts ~/.cache/inlet-counterparts'

export function findProgram(name: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', join(folder, 'bin')]
  return folders.map((each) => join(each, name)).find(existsSync)
}

const typed = 'one bad value fails the whole file'
const engines = {
  DuckDB: typed,
  Polars: `${typed}; UUIDs stay text`,
  pyarrow: `${typed}; UUIDs stay text`,
  ClickHouse: typed,
}
type Engine = keyof typeof engines
type Run = { readonly version: string; readonly seconds: number; readonly rows: number }

/** Reads lines of JSON from a file into typed Parquet with other engines, each on one core in a process of its own. */
export class EngineRuns {
  readonly #python = join(process.env['INLET_TEST_ENGINES'] ?? join(folder, 'engines'), 'python', 'bin', 'python')
  readonly #runs = new Map<Engine, Run[]>()

  /** Runs each engine once. One that cannot read these records keeps no run. */
  measure(lines: string, directory: string, columns: readonly object[], records: number): void {
    if (!existsSync(this.#python)) return
    for (const engine of Object.keys(engines) as Engine[]) {
      const script = join(import.meta.dirname, 'engines.py')
      const output = join(directory, `${engine}.parquet`)
      const command = [this.#python, script, engine, lines, output, JSON.stringify(columns)]
      const [program = '', ...args] = pinned ? ['taskset', '-c', '1', ...command] : command
      const runs = this.#runs.get(engine) ?? []
      this.#runs.set(engine, runs)
      try {
        const env = { ...process.env, POLARS_MAX_THREADS: '1' }
        const run = JSON.parse(execFileSync(program, args, { encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'ignore'] })) as Run
        if (run.rows === records) runs.push(run)
      } catch {
        // For example a number that is written as text, for Polars and pyarrow.
      }
    }
  }

  /** Returns the CPU seconds of the best run of each engine, a GB. */
  peers(bytes: number): readonly Peer[] {
    if (this.#runs.size === 0) return Object.keys(engines).map((name) => ({ name, install: howToInstall }))
    return [...this.#runs].map(([engine, runs]) => ({
      name: `${engine} ${runs[0]?.version ?? ''}`.trim(),
      value: runs.length === 0 ? Number.NaN : (best(runs.map(({ seconds }) => seconds)) / bytes) * 1e9,
      guarantee: runs.length === 0 ? 'does not read these records' : engines[engine],
    }))
  }
}
