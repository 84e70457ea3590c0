/** Runs this program again in namespaces of its own, if that is permitted. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { signalAll } from './host.ts'
import type { NetworkKind } from './network.ts'

const variable = 'CLUSTER_NETWORK'
/** Where directories of findings are kept. */
const keepVariable = 'CLUSTER_KEEP'
/** The process namespace ends all programs with this one, also if it is killed. */
const unshare = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc']

/** Returns the network of this process, or undefined before `enterNamespaces`. */
export function enteredNetwork(): NetworkKind | undefined {
  const value = process.env[variable]
  return value === 'namespaces' || value === 'loopback' ? value : undefined
}

/** Returns why namespaces are not permitted, or undefined if they are. */
export function namespaceProblem(): string | undefined {
  const attempt = ['ip', 'link', 'add', 'v0', 'type', 'veth', 'peer', 'name', 'v1']
  const { status, error, stderr } = spawnSync('unshare', [...unshare, ...attempt], { encoding: 'utf8' })
  if (status === 0) return undefined
  return (error?.message ?? stderr.trim()) || `unshare ended with ${status}`
}

/** Runs the program again and returns its exit code. Its temporary files are removed even if it was killed. */
export async function runInside(kind: NetworkKind): Promise<number> {
  const scratch = mkdtempSync(join(tmpdir(), 'inlet-cluster-'))
  // Postgres runs as a different user.
  chmodSync(scratch, 0o755)
  const program = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  const [command = '', ...args] = kind === 'namespaces' ? ['unshare', ...unshare, ...program] : program
  const child = spawn(command, args, {
    stdio: 'inherit',
    env: { ...process.env, [variable]: kind, TMPDIR: scratch, [keepVariable]: tmpdir() },
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    // The first process of a namespace ignores signals that it does not handle, but not the end of the namespace.
    process.on(signal, () => signalAll([child.pid ?? 0], 'SIGKILL'))
  }
  const [code] = (await once(child, 'exit')) as [number | null]
  rmSync(scratch, { recursive: true, force: true })
  return code ?? 1
}

/** Moves a directory out of the temporary files, and returns its new path. */
export function keepDirectory(directory: string, name: string): string {
  const kept = join(process.env[keepVariable] ?? tmpdir(), `inlet-cluster-${name}-${process.hrtime.bigint().toString(36)}`)
  renameSync(directory, kept)
  return kept
}
