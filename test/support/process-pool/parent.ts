/** A process with a pool: prints the pid of a worker that it keeps idle. */
import { join } from 'node:path'
import { systemClock } from '#lib/clock.ts'
import { ProcessPool } from '#lib/process-pool.ts'

const pool = new ProcessPool<string, { readonly pid: number }>({
  program: join(import.meta.dirname, 'worker.ts'),
  idleMs: 60_000,
  clock: systemClock,
})
const end = await pool.run('describe', { timeoutMs: 60_000, signal: new AbortController().signal })
process.stdout.write(`${'reply' in end ? end.reply.pid : 'none'}\n`)
