/**
 * The child's side of a process pool (process-pool.ts).
 *
 * Law: this process dies with its parent, whatever it works on.
 */

import { writeFileSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { getPriority, setPriority } from 'node:os'
import { memoryGauge } from './memory-gauge.ts'
import { ownEnd, type ParentMessage, type WorkerMessage } from './process-pool.ts'

/** Asks the parent process. It may give no answer: then the time limit of the task ends this process. */
export type Ask = (question: unknown) => Promise<unknown>

/**
 * Runs one task after the other for the parent process. `run` must not throw. It may report what it does, which starts a new time limit, and ask
 * one question at a time.
 * A nicer process leaves the processor to others. `usesUp` says after which tasks it gets no further one.
 */
export function serveTasks<Task, Reply, Report = never>(
  run: (task: Task, report: (report: Report) => void, ask: Ask) => Promise<Reply>,
  { niceness, usesUp }: { readonly niceness: number; readonly usesUp?: (task: Task) => boolean },
): void {
  // Inlet may have been started with a higher niceness, which only a privileged user may lower.
  if (getPriority() < niceness) setPriority(niceness)
  preferAsOomVictim()
  // The parent ends this process. A terminal signals both at Ctrl-C.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
  process.on('disconnect', endAtOnce)
  // An exit after an error that nothing caught. It waits for the threads of DuckDB, which may wait for this one: the process would stay for ever.
  process.on('exit', () => process.kill(process.pid, ownEnd))
  const send = (message: WorkerMessage<Reply, Report>) =>
    process.send?.(message, (error: Error | null) => {
      if (error !== null) endAtOnce()
    })
  const isFull = memoryGauge()
  let answered: (answer: unknown) => void = () => undefined
  const ask: Ask = (question) =>
    new Promise((resolve) => {
      answered = resolve
      send({ question })
    })
  process.on('message', async (message: ParentMessage<Task>) => {
    if ('answer' in message) return answered(message.answer)
    const { task } = message
    const reply = await run(task, (report) => send({ report }), ask)
    send(isFull() || usesUp?.(task) ? { reply, isLast: true } : { reply })
    // Node would write at the exit what it compiled, but this process is killed.
    flushCompileCache()
  })
  send({ ready: true })
}

function endAtOnce(): void {
  process.kill(process.pid, 'SIGKILL')
}

/** Has the kernel end this process before others if the machine runs out of memory. */
function preferAsOomVictim(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {
    // Only Linux has it.
  }
}
