/** Processes of a server benchmark: servers on one core, the load generator on another. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'

/** Requests of the parent process to a server between two rounds. */
export type Question = 'usage' | 'clean' | 'stop'
export type ServerMessage =
  | { readonly ready: string }
  /** Microseconds of CPU since the start. */
  | { readonly usage: number }
  | { readonly cleaned: true }

export const pinned = availableParallelism() > 1 && hasTaskset()

export const cores = pinned ? 'server on core 0, load on core 1' : 'cores not pinned: no taskset, or only one core'

/** Returns a command that is pinned to one core. */
export function start(core: number, command: readonly string[], ipc = true): ChildProcess {
  const [program = '', ...args] = pinned ? ['taskset', '-c', String(core), ...command] : command
  return spawn(program, args, { stdio: ipc ? ['ignore', 'inherit', 'inherit', 'ipc'] : ['ignore', 'inherit', 'inherit'] })
}

/** Runs in a server process: reports its addresses and replies to the parent. */
export function answerQuestions(running: { readonly url: string; clean(): Promise<void>; stop(): Promise<void> }): void {
  const tell = (message: ServerMessage) => process.send?.(message)
  process.on('message', async (question: Question) => {
    if (question === 'usage') {
      const { user, system } = process.cpuUsage()
      tell({ usage: user + system })
    } else if (question === 'clean') {
      await running.clean()
      tell({ cleaned: true })
    } else {
      await running.stop()
      process.exit(0)
    }
  })
  tell({ ready: running.url })
}

/** Waits for the next message of a process. */
export function next(child: ChildProcess): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>()
  const onExit = (code: number | null) => reject(new Error(`a benchmark process exited early (${code})`))
  child.once('exit', onExit)
  child.once('message', (message) => {
    child.off('exit', onExit)
    resolve(message)
  })
  return promise
}

export function ask(child: ChildProcess, question: Question): Promise<unknown> {
  const answer = next(child)
  child.send(question)
  return answer
}

export function usageOf(message: unknown): number {
  return (message as ServerMessage & { usage: number }).usage
}

export async function stop(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.send('stop' satisfies Question)
  await ended
}

function hasTaskset(): boolean {
  try {
    execFileSync('taskset', ['-c', '1', 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
