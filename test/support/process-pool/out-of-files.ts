/** A process without a free file descriptor that starts a worker: prints how that ends. Its limit must be low. */
import { openSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '#lib/clock.ts'
import { errorCode } from '#lib/files.ts'
import { ProcessPool } from '#lib/process-pool.ts'

const pool = new ProcessPool({ program: join(import.meta.dirname, 'worker.ts'), idleMs: 60_000, clock: systemClock })
try {
  for (;;) openSync('/dev/null', 'r')
} catch (error) {
  if (errorCode(error) !== 'EMFILE') throw error
}
const end = await pool.run('describe', { timeoutMs: 60_000, signal: new AbortController().signal })
process.stdout.write(JSON.stringify(end))
