/** A program for a process pool whose tasks behave badly on request. */
import { serveTasks } from '#lib/serve-tasks.ts'

export type Task = 'describe' | 'busy' | 'exit' | { readonly echo: unknown }

async function run(task: Task): Promise<unknown> {
  if (typeof task === 'object') return task.echo
  if (task === 'exit') process.exit(3)
  if (task === 'busy') for (;;);
  return { pid: process.pid, environment: Object.keys(process.env).filter((name) => !name.startsWith('NODE_CHANNEL')) }
}

serveTasks(run, { niceness: 0 })
