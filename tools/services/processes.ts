/** Helpers for all components: start and end processes, wait for them, find free ports. */
import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout } from 'node:timers/promises'

const pollMs = 50

/** Where a component runs. */
export type Place = {
  readonly address: string
  /** Command that runs another one in a network namespace; empty for this one. */
  readonly enter: readonly string[]
}

export const loopback: Place = { address: '127.0.0.1', enter: [] }

/** Returns the program and the arguments that run a program at a place. */
export function commandAt({ enter }: Place, program: string, args: readonly string[]): readonly [string, readonly string[]] {
  const [first = program, ...rest] = [...enter, program, ...args]
  return [first, rest]
}

/** Starts a program at a place. The returned process is the program itself, so signals reach it. */
export function spawnAt(place: Place, program: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  return spawn(...commandAt(place, program, args), options)
}

/** Throws an error that names the Debian package if one of its programs is missing. */
export function requireProgram(program: string, debianPackage: string): void {
  try {
    execFileSync('which', [program], { stdio: 'ignore' })
  } catch {
    throw new Error(`${program} is not installed: install the Debian package ${debianPackage}`)
  }
}

/** Sends the signal and waits until the process exits. Kills it after the timeout. */
export async function end(child: ChildProcess, signal: NodeJS.Signals, timeoutMs = 10_000): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  using _kill = deadline(timeoutMs, () => child.kill('SIGKILL'))
  await ended
}

/** Polls until `isUp` returns true. Throws after the timeout, or if one of the processes exits. */
export async function waitUntilUp(
  what: string,
  isUp: () => Promise<boolean>,
  { needs, timeoutMs }: { readonly needs: readonly ChildProcess[]; readonly timeoutMs: number },
): Promise<void> {
  const until = performance.now() + timeoutMs
  while (!(await isUp())) {
    const dead = needs.find(({ exitCode, signalCode }) => exitCode !== null || signalCode !== null)
    if (dead !== undefined) throw new Error(`${dead.spawnfile} exited during startup with ${dead.exitCode ?? dead.signalCode}`)
    if (performance.now() > until) throw new Error(`${what} did not respond within ${timeoutMs / 1000} s`)
    await setTimeout(pollMs)
  }
}

/** Below the ports that systems give to outgoing connections: one of those could take it before the server does. */
const portMin = 10_000
const portMax = 30_000
/** Test files that run beside each other choose from ranges of their own: a port that is chosen is not in use yet. */
const ranges = 8
const rangePorts = (portMax - portMin) / ranges

const given = new Set<number>()

/** Returns a port of 127.0.0.1 on which nothing listens, and which this process was not given before: an earlier one may not be in use yet. */
export async function freePort(): Promise<number> {
  for (;;) {
    const range = Number(process.env['VITEST_POOL_ID'] ?? 0) % ranges
    const port = portMin + range * rangePorts + randomInt(rangePorts)
    if (given.has(port)) continue
    const server = createServer().listen(port, '127.0.0.1')
    try {
      await once(server, 'listening')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
      continue
    }
    server.close()
    await once(server, 'close')
    given.add(port)
    return port
  }
}

function deadline(ms: number, then: () => void): Disposable {
  const timer = globalThis.setTimeout(then, ms)
  return { [Symbol.dispose]: () => clearTimeout(timer) }
}
