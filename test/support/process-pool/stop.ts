/** A process that stops a pool with an idle worker, and has nothing else to do: prints that the pool has stopped. */
import { join } from 'node:path'
import { systemClock } from '#lib/clock.ts'
import { ProcessPool } from '#lib/process-pool.ts'

const pool = new ProcessPool({ program: join(import.meta.dirname, 'worker.ts'), idleMs: 60_000, clock: systemClock })
await pool.run('share channel', { timeoutMs: 60_000, signal: new AbortController().signal })
await pool.stop()
process.stdout.write('stopped')
