/**
 * The three processes of a node under test.
 *
 * Owns: starting, killing, stopping, steering, what they print, and whether they ended by themselves.
 * Law: a process that ends although the harness did not end it is noted. It is started again, so that the round goes on, as a supervisor
 * would. Only a start that fails, and in which a disk fault was on, is no finding.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, mkdirSync, readFileSync, type WriteStream, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { noFaults, type Settings, type Steering } from './child/steering.ts'

export const processNames = ['control', 'ingest', 'delivery'] as const
export type ProcessName = (typeof processNames)[number]

const program = join(import.meta.dirname, 'child/main.ts')
/** Pause before a process that ended by itself is started again. */
const restartMs = 500

type Running = {
  readonly child: ChildProcess
  isReady: boolean
  isEnded: boolean
  isExpected: boolean
  isPaused: boolean
  /** Since it was started. */
  hadDiskFault: boolean
}

export type ProcessesOptions = {
  readonly directory: string
  readonly environment: Readonly<Record<string, string | undefined>>
}

export class Processes {
  readonly #options: ProcessesOptions
  readonly #running = new Map<ProcessName, Running>()
  readonly #log: WriteStream
  #environment: Readonly<Record<string, string | undefined>>
  #steering: Readonly<Record<ProcessName, Steering>> = { control: noFaults, ingest: noFaults, delivery: noFaults }
  #boot = 0
  #starts = 0
  #isClosing = false
  /** Journals of the processes since the last power loss. */
  readonly #journals: string[] = []
  /** Misbehaviour of a healthy process: ending by itself, or a fatal error. */
  readonly troubles: string[] = []
  /** Starts that failed on a broken disk, which is allowed. */
  failedStarts = 0

  constructor(options: ProcessesOptions) {
    this.#options = options
    this.#environment = options.environment
    for (const folder of ['journal', 'graveyard']) mkdirSync(join(options.directory, folder), { recursive: true })
    this.#log = createWriteStream(join(options.directory, 'log.ndjson'), { flags: 'a' })
  }

  isRunning(name: ProcessName): boolean {
    return this.#running.get(name)?.isEnded === false
  }

  /** Whether the process is ready, not stopped, and has a healthy disk. */
  isHealthy(name: ProcessName): boolean {
    const running = this.#running.get(name)
    return running?.isEnded === false && running.isReady && !running.isPaused && this.#steering[name].files.length === 0
  }

  get isEverythingReady(): boolean {
    return processNames.every((name) => this.isRunning(name) && this.#running.get(name)?.isReady === true)
  }

  get pausedOrDown(): readonly string[] {
    return processNames.flatMap((name) => {
      if (!this.isRunning(name)) return [`${name} down`]
      return this.#running.get(name)?.isPaused === true ? [`${name} stopped`] : []
    })
  }

  /** Changes the environment of processes that start later. */
  configure(environment: Readonly<Record<string, string>>): void {
    this.#environment = { ...this.#environment, ...environment }
  }

  /** Starts those that are not running. */
  start(names: readonly ProcessName[]): void {
    for (const name of names) if (!this.isRunning(name)) this.#spawn(name)
  }

  /** Sends the steering to the processes, and to those that start later. */
  steer(names: readonly ProcessName[], change: (steering: Steering) => Steering): void {
    for (const name of names) {
      const steering = change(this.#steering[name])
      this.#steering = { ...this.#steering, [name]: steering }
      const running = this.#running.get(name)
      if (running === undefined || running.isEnded) continue
      running.hadDiskFault ||= steering.files.length > 0
      if (running.child.connected) running.child.send(steering, () => undefined)
    }
  }

  async kill(names: readonly ProcessName[]): Promise<void> {
    await Promise.all(names.map((name) => this.#end(name, 'SIGKILL')))
  }

  /** Kills the conversion processes of delivery. Without a program such as prlimit, which it asks when it starts, it could not start. */
  killConversions(): void {
    const running = this.#running.get('delivery')
    if (running?.child.pid === undefined || running.isEnded) return
    for (const pid of childrenOf(running.child.pid)) {
      try {
        if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('convert-worker')) process.kill(pid, 'SIGKILL')
      } catch {
        // It has just ended.
      }
    }
  }

  /** Ends a process as an operator does, by SIGTERM. One that does not end in time is killed, which is noted. */
  async stop(name: ProcessName, timeoutMs: number): Promise<void> {
    const running = this.#running.get(name)
    if (running === undefined || running.isEnded) return
    this.resume([name])
    const timer = setTimeout(() => {
      if (!running.isExpected || running.isEnded) return
      this.troubles.push(`${name} did not end within ${timeoutMs / 1000} s of SIGTERM`)
      running.child.kill('SIGKILL')
    }, timeoutMs)
    await this.#end(name, 'SIGTERM')
    clearTimeout(timer)
  }

  pause(names: readonly ProcessName[]): void {
    this.#setPaused(names, true)
  }

  resume(names: readonly ProcessName[]): void {
    this.#setPaused(names, false)
  }

  /** Kills everything. Returns the journals of what is not durable, and starts new ones. */
  async losePower(): Promise<readonly string[]> {
    await this.kill(processNames)
    this.#boot += 1
    return this.#journals.splice(0)
  }

  async close(): Promise<void> {
    this.#isClosing = true
    await this.kill(processNames)
    this.#log.end()
    await once(this.#log, 'close')
  }

  #spawn(name: ProcessName): void {
    if (this.#isClosing) return
    const { directory } = this.#options
    this.#starts += 1
    const journal = join(directory, 'journal', `${this.#boot}-${this.#starts}-${name}.ndjson`)
    writeFileSync(journal, '')
    this.#journals.push(journal)
    const settings: Settings = { journal, graveyard: join(directory, 'graveyard'), steering: this.#steering[name] }
    const child = spawn(process.execPath, [program, name, JSON.stringify(settings)], {
      env: this.#environment,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    const running: Running = {
      child,
      isReady: false,
      isEnded: false,
      isExpected: false,
      isPaused: false,
      hadDiskFault: settings.steering.files.length > 0,
    }
    this.#running.set(name, running)
    child.on('message', () => {
      running.isReady = true
    })
    const fatal: string[] = []
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue
      createInterface({ input: stream }).on('line', (line) => {
        this.#log.write(`${line}\n`)
        if (line.includes('"level":"fatal"') || !line.startsWith('{')) fatal.push(line)
      })
    }
    // 'close' comes after the last line, 'exit' may come before it.
    child.once('exit', () => {
      running.isEnded = true
    })
    child.once('close', (code, signal) => this.#noteEnd(name, running, { code, signal, fatal }))
  }

  #noteEnd(
    name: ProcessName,
    running: Running,
    { code, signal, fatal }: { readonly code: number | null; readonly signal: string | null; readonly fatal: readonly string[] },
  ): void {
    const isFailedStart = !running.isReady && running.hadDiskFault
    const last = fatal.find((line) => line.includes('fatal')) ?? fatal.at(-1) ?? ''
    if (!running.isExpected) {
      if (isFailedStart) this.failedStarts += 1
      else this.troubles.push(`${name} ended by itself (${signal ?? `code ${code}`}): ${shorten(last)}`)
      setTimeout(() => this.start([name]), restartMs)
    } else if (last.includes('"level":"fatal"') && !isFailedStart) {
      this.troubles.push(`${name} logged a fatal error: ${shorten(last)}`)
    }
  }

  async #end(name: ProcessName, signal: NodeJS.Signals): Promise<void> {
    const running = this.#running.get(name)
    if (running === undefined || running.isEnded) return
    running.isExpected = true
    const ended = once(running.child, 'exit')
    running.child.kill(signal)
    await ended
  }

  #setPaused(names: readonly ProcessName[], isPaused: boolean): void {
    for (const name of names) {
      const running = this.#running.get(name)
      if (running === undefined || running.isEnded || running.isPaused === isPaused) continue
      running.isPaused = isPaused
      running.child.kill(isPaused ? 'SIGSTOP' : 'SIGCONT')
    }
  }
}

function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

function shorten(line: string): string {
  return line.length > 600 ? `${line.slice(0, 600)} …` : line
}
