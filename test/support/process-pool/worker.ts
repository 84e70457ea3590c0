/** A program for a process pool whose tasks behave badly on request. */

import { spawn } from 'node:child_process'
import { open, writeFileSync } from 'node:fs'
import { GiB } from '#lib/bytes.ts'
import { serveTasks } from '#lib/serve-tasks.ts'

export type Task =
  | { readonly reportBefore: string }
  | { readonly exitBesideFifo: string }
  | 'describe'
  | 'share channel'
  | 'hoard'
  | 'busy'
  | 'exit'
  | 'report and exit'
  | 'report and be busy'
  | { readonly echo: unknown }

/** The descriptor that a pool gives to its processes. */
const channel = 3

const hoard: Buffer[] = []

async function run(task: Task, report: (report: string) => void): Promise<unknown> {
  if (typeof task === 'object' && 'reportBefore' in task) {
    report('first')
    writeFileSync(task.reportBefore, '')
    for (;;);
  }
  if (typeof task === 'object' && 'exitBesideFifo' in task) {
    // Its thread waits for ever, as one of DuckDB may.
    open(task.exitBesideFifo, 'r', () => undefined)
    await new Promise((resolve) => setImmediate(resolve))
    process.exit(3)
  }
  if (typeof task === 'object') return task.echo
  if (task === 'report and exit' || task === 'report and be busy') for (const step of ['first', 'last']) report(step)
  if (task === 'report and exit') process.kill(process.pid, 'SIGSEGV')
  if (task === 'report and be busy') for (;;);
  if (task === 'exit') process.exit(3)
  if (task === 'hoard') {
    // Mapped, but never touched.
    hoard.push(Buffer.allocUnsafeSlow(GiB))
    return { pid: process.pid }
  }
  if (task === 'busy') for (;;);
  // It keeps the channel open for a while once this process has ended.
  if (task === 'share channel') spawn('sleep', ['0.5'], { stdio: ['ignore', 'ignore', 'ignore', channel] }).unref()
  return { pid: process.pid, environment: Object.keys(process.env).filter((name) => !name.startsWith('NODE_')) }
}

serveTasks(run, { niceness: 0 })
