import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { isRunning } from '../../test/support/is-running.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import type { Task } from '../../test/support/process-pool/worker.ts'
import { until } from '../../test/support/until.ts'
import { systemClock } from './clock.ts'
import { ProcessPool } from './process-pool.ts'

const programs = join(import.meta.dirname, '../../test/support/process-pool')
const never = new AbortController().signal
const idleMs = 60_000

type Described = { readonly pid: number; readonly environment: readonly string[] }

function newPool(options: Partial<ConstructorParameters<typeof ProcessPool>[0]> = {}): ProcessPool<Task, unknown, string> {
  return new ProcessPool({ program: join(programs, 'worker.ts'), idleMs, clock: systemClock, ...options })
}

let pool = newPool()
beforeEach(() => {
  pool = newPool()
})
afterEach(() => pool.stop())

async function describeWorker(): Promise<Described> {
  const end = await pool.run('describe', { timeoutMs: 60_000, signal: never })
  if (!('reply' in end)) throw new Error(`no reply: ${JSON.stringify(end)}`)
  return end.reply as Described
}

test('a process is used again, and has none of our environment', async () => {
  const first = await describeWorker()
  // Variables of Node, for its channel and its compile cache, are left out.
  expect(first.environment).toEqual(['MALLOC_ARENA_MAX', 'MALLOC_MMAP_THRESHOLD_'])
  expect(await describeWorker()).toEqual(first)
})

test('a process that has used most of its memory gets no further task', async () => {
  const limited = (command: readonly string[]) => ['/bin/sh', '-c', 'ulimit -d 2000000 && exec "$0" "$@"', ...command]
  pool = newPool({ commandLine: limited })
  const first = await describeWorker()
  expect(await describeWorker()).toEqual(first)
  expect(await pool.run('hoard', { timeoutMs: 60_000, signal: never })).toEqual({ reply: { pid: first.pid } })
  expect(isRunning(first.pid)).toBe(false)
})

test('bytes and errors arrive as what they are', async () => {
  const echo = { bytes: new Uint8Array([1, 2]), error: new RangeError('no') }
  expect(await pool.run({ echo }, { timeoutMs: 60_000, signal: never })).toEqual({ reply: echo })
})

test('tasks at the same time run in different processes', async () => {
  const [one, other] = await Promise.all([describeWorker(), describeWorker()])
  expect(one.pid).not.toBe(other.pid)
})

test('a task that holds its process is killed at its time limit, and no process is left', async () => {
  const { pid } = await describeWorker()
  expect(await pool.run('busy', { timeoutMs: 50, signal: never })).toEqual({ timedOut: true })
  expect(isRunning(pid)).toBe(false)
  expect((await describeWorker()).pid).not.toBe(pid)
})

test('the time limit of a task begins when its process is ready', async () => {
  const clock = new ManualClock()
  pool = newPool({ clock })
  let isReady = false
  const onReady = () => {
    isReady = true
  }
  const run = pool.run('busy', { timeoutMs: 50, signal: never, onReady })
  clock.advance(59_000)
  await until('the process to be ready', () => isReady)
  clock.advance(50)
  expect(await run).toEqual({ timedOut: true })
})

test('a task that is aborted is killed', async () => {
  const { pid } = await describeWorker()
  const caller = new AbortController()
  const run = pool.run('busy', { timeoutMs: 60_000, signal: caller.signal })
  caller.abort(new Error('gone'))
  await expect(run).rejects.toThrow('gone')
  expect(isRunning(pid)).toBe(false)
})

test('a process that ends says how', async () => {
  expect(await pool.run('exit', { timeoutMs: 60_000, signal: never })).toEqual({ exited: 'ended by an error of its own' })
})

test('a process that exits while one of its threads waits for ever does end', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'inlet-pool-'))
  const fifo = join(directory, 'fifo')
  await promisify(execFile)('mkfifo', [fifo])
  const end = await pool.run({ exitBesideFifo: fifo }, { timeoutMs: 10_000, signal: never })
  expect(end).toEqual({ exited: 'ended by an error of its own' })
  rmSync(directory, { recursive: true })
})

test('every report arrives before the end of its process, and starts a new time limit', async () => {
  const reports: string[] = []
  const run = (task: Task, limitMs: number) => {
    const onReport = (report: string) => {
      reports.push(report)
      return limitMs
    }
    return pool.run(task, { timeoutMs: 60_000, signal: never, onReport })
  }
  expect(await run('report and exit', 60_000)).toEqual({ exited: 'killed by SIGSEGV' })
  expect(await run('report and be busy', 50)).toEqual({ timedOut: true })
  expect(reports).toEqual(['first', 'last', 'first', 'last'])
})

test('a report that waits to be read is in time', async () => {
  await describeWorker()
  const directory = mkdtempSync(join(tmpdir(), 'inlet-pool-'))
  const path = join(directory, 'reported')
  let reports = 0
  const onReport = () => {
    reports += 1
    return 10
  }
  const limitMs = 100
  const startedAt = performance.now()
  const run = pool.run({ reportBefore: path }, { timeoutMs: limitMs, signal: never, onReport })
  // This process reads nothing and runs no timer meanwhile.
  while (!existsSync(path) || performance.now() - startedAt <= limitMs);
  expect(await run).toEqual({ timedOut: true })
  expect(reports).toBe(1)
  rmSync(directory, { recursive: true })
})

test('a command line replaces the given one', async () => {
  pool = newPool({ commandLine: (command) => ['/usr/bin/env', 'PASSED=1', ...command] })
  expect((await describeWorker()).environment).toEqual(['MALLOC_ARENA_MAX', 'MALLOC_MMAP_THRESHOLD_', 'PASSED'])
})

test('a process that is ready gets the next task', async () => {
  let starts = 0
  pool = newPool({
    commandLine: (command) => {
      starts += 1
      return command
    },
  })
  pool.warm()
  pool.warm()
  expect(starts).toBe(1)
  await describeWorker()
  expect(starts).toBe(1)
})

test('a program that is missing is not waited for', async () => {
  pool = newPool({ commandLine: (command) => ['/nonexistent/program', ...command] })
  const end = await pool.run('describe', { timeoutMs: 60_000, signal: never })
  expect(end).toEqual({ exited: expect.stringMatching(/^could not start: .*ENOENT/) })
})

test('without a free file descriptor, a process does not start, and says why', async () => {
  const command = `ulimit -n 64 && exec "$0" "$1"`
  const starved = await promisify(execFile)('sh', ['-c', command, process.execPath, join(programs, 'out-of-files.ts')])
  expect(JSON.parse(starved.stdout)).toEqual({ exited: expect.stringMatching(/^could not start: .*EMFILE/) })
})

test('an idle process ends after a while', async () => {
  const clock = new ManualClock()
  pool = newPool({ clock })
  const { pid } = await describeWorker()
  expect(pool.pids).toEqual([pid])
  clock.advance(idleMs)
  await until('the process to end', () => !isRunning(pid))
  await until('the pool to notice', () => pool.pids.length === 0)
})

test('stopping ends idle and busy processes, and refuses further tasks', async () => {
  const [idle, busy] = await Promise.all([describeWorker(), describeWorker()])
  const run = pool.run('busy', { timeoutMs: 60_000, signal: never })
  await Promise.all([pool.stop(), expect(run).rejects.toThrow('the process pool has stopped')])
  expect([idle, busy].map(({ pid }) => isRunning(pid))).toEqual([false, false])
  await expect(describeWorker()).rejects.toThrow('the process pool has stopped')
})

test('a parent that has nothing else to do waits for the end of its processes', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [join(programs, 'stop.ts')])
  expect(stdout).toBe('stopped')
})

test('a process ends when its parent is killed', async () => {
  const parent = spawn(process.execPath, [join(programs, 'parent.ts')], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(parent.stdout, 'data')
  const pid = Number(String(line))
  expect(isRunning(pid)).toBe(true)
  parent.kill('SIGKILL')
  await until('the worker to end', () => !isRunning(pid))
})
