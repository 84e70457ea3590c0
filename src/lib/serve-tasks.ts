/**
 * The child's side of a process pool (process-pool.ts).
 *
 * Law: this process dies with its parent, whatever it works on.
 */
import { setPriority } from 'node:os'

/** Runs one task after the other for the parent process. `run` must not throw. A nicer process leaves the processor to others. */
export function serveTasks<Task, Reply>(run: (task: Task) => Promise<Reply>, { niceness }: { readonly niceness: number }): void {
  setPriority(niceness)
  // The parent ends this process. A terminal signals both at Ctrl-C.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
  // A normal exit would wait for DuckDB.
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
  process.on('message', async (task) => process.send?.(await run(task as Task)))
}
