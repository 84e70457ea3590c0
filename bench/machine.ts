import { execFileSync } from 'node:child_process'
import { availableParallelism, cpus, release, totalmem, type } from 'node:os'
import type { Machine } from './figures.ts'

/** Returns what figures depend on. A commit with `+` has changes that are not committed. */
export function thisMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown CPU',
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    kernel: `${type()} ${release()}`,
    node: process.versions.node,
    commit: commit(),
    date: new Date().toISOString().slice(0, 19).concat('Z'),
  }
}

function commit(): string {
  const git = (...command: string[]) =>
    execFileSync('git', command, { cwd: import.meta.dirname, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  try {
    return git('rev-parse', '--short=8', 'HEAD') + (git('status', '--porcelain') === '' ? '' : '+')
  } catch {
    return 'no commit'
  }
}
