/**
 * One Inlet program on a host, such as `inlet node`.
 *
 * Owns: starting, killing and stopping it, what it prints, and whether it ended by itself.
 * Law: a program that ends although the harness did not end it is noted, and started again as a service manager would.
 */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { Host } from '../network/host.ts'

const main = join(import.meta.dirname, '../../../src/main.ts')
/** Pause before a program that ended by itself is started again. */
const restartMs = 1_000
/** A drain takes as long as the settings of the cluster allow, and some time to end. */
const stopMsMax = 60_000

export type Environment = Readonly<Record<string, string>>

export type ProgramOptions = {
  readonly host: Host
  readonly args: readonly string[]
  readonly environment: Environment
  /** File to which its output goes, with that of others. */
  readonly log: string
  /** Misbehaviour of a healthy program. */
  readonly troubles: string[]
}

export class Program {
  readonly #options: ProgramOptions
  #environment: Environment
  #child: ChildProcess | undefined
  #isExpectedToRun = false
  #isPaused = false

  constructor(options: ProgramOptions) {
    this.#options = options
    this.#environment = options.environment
  }

  get host(): Host {
    return this.#options.host
  }

  get isRunning(): boolean {
    return this.#child !== undefined && !this.#isPaused
  }

  /** Changes the environment of later starts. */
  configure(environment: Environment): void {
    this.#environment = { ...this.#environment, ...environment }
  }

  start(args: readonly string[] = this.#options.args): void {
    if (this.#child !== undefined) return
    const { host, troubles, log } = this.#options
    const child = host.spawn(process.execPath, [main, ...args], { env: this.#environment, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child = child
    this.#isExpectedToRun = true
    this.#isPaused = false
    let last = ''
    logOutput(child, (line) => {
      appendFileSync(log, `${host.name} ${line}\n`)
      if (line.includes('"level":"fatal"')) last = line
    })
    child.once('close', (code, signal) => {
      this.#child = undefined
      if (!this.#isExpectedToRun) return
      troubles.push(`${args[0]} on ${host.name} ended by itself (${signal ?? `code ${code}`}): ${last.slice(0, 600)}`)
      setTimeout(() => this.#isExpectedToRun && this.start(args), restartMs)
    })
  }

  /** Runs another command on the same host with the same environment. */
  runBeside(args: readonly string[]): ChildProcess {
    const { host, log } = this.#options
    const child = host.spawn(process.execPath, [main, ...args], { env: this.#environment, stdio: ['ignore', 'pipe', 'pipe'] })
    logOutput(child, (line) => appendFileSync(log, `${host.name} ${line}\n`))
    return child
  }

  /** Runs a command on the same host until it ends, and returns what it prints. Throws an error if it fails. */
  async run(args: readonly string[]): Promise<string> {
    const { host } = this.#options
    const child = host.spawn(process.execPath, [main, ...args], { env: this.#environment, stdio: ['ignore', 'pipe', 'pipe'] })
    const [code, output, errors] = await Promise.all([once(child, 'close'), read(child.stdout), read(child.stderr)])
    if (code[0] !== 0) throw new Error(`inlet ${args.join(' ')} ended with ${code[0]}: ${errors}${output}`)
    return output
  }

  /** Ends the program and everything that it started, as a power failure would. */
  async kill(): Promise<void> {
    this.#isExpectedToRun = false
    const child = this.#child
    if (child === undefined) return
    const closed = once(child, 'close')
    this.host.signal('SIGKILL')
    await closed
  }

  /** Ends it as an operator does. One that does not end in time is killed, which is noted. */
  async stop(): Promise<void> {
    this.#isExpectedToRun = false
    const child = this.#child
    if (child === undefined) return
    const closed = once(child, 'close')
    const timer = setTimeout(() => {
      this.#options.troubles.push(`${this.host.name} did not end within ${stopMsMax / 1000} s of SIGTERM`)
      this.host.signal('SIGKILL')
    }, stopMsMax)
    child.kill('SIGTERM')
    await closed
    clearTimeout(timer)
  }

  pause(): void {
    this.#isPaused = true
    this.host.signal('SIGSTOP')
  }

  resume(): void {
    this.#isPaused = false
    this.host.signal('SIGCONT')
  }
}

function read(stream: Readable | null): Promise<string> {
  return stream === null ? Promise.resolve('') : text(stream)
}

function logOutput({ stdout, stderr }: ChildProcess, onLine: (line: string) => void): void {
  for (const stream of [stdout, stderr]) if (stream !== null) createInterface({ input: stream }).on('line', onLine)
}
