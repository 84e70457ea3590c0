/**
 * A page of the documentation that a test runs as its reader would: the `sh` blocks in their order in one shell, on a machine of their
 * own. A `text` block is what the commands before it print; `…` stands for what differs from run to run. Imports nothing of the program.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { test } from 'vitest'
import { until } from './until.ts'

const root = resolve(import.meta.dirname, '../..')
const blockTimeoutMs = 120_000

/** `section` is the heading above it. */
export type Block = { readonly language: string; readonly text: string; readonly line: number; readonly section: string }

/** Returns the code blocks of a page of `docs/`. */
export function blocksOf(page: string): readonly Block[] {
  const text = readFileSync(join(root, 'docs', page), 'utf8')
  const found = text.matchAll(/^( *)```(\w+)\n(.*?)^ *```$/gms)
  return [...found].map(({ 1: indent = '', 2: language = '', 3: code = '', index }) => ({
    language,
    text: code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    line: text.slice(0, index).split('\n').length,
    section:
      text
        .slice(0, index)
        .match(/^#+ .*$/gm)
        ?.at(-1)
        ?.replace(/^#+ /, '') ?? '',
  }))
}

/** Programs that a page uses beside Inlet. `aws` is with the engines: see docs/contributing/components.md. */
const engines = process.env['INLET_TEST_ENGINES']
const programs: readonly string[] = engines === undefined ? [] : [join(engines, 'aws/bin')]
export const searchPath = [...programs, process.env['PATH'] ?? ''].join(delimiter)

/** Declares the test of a page. One whose programs are missing is skipped, and says so. */
export function testPage(name: string, needs: readonly string[], follow: () => Promise<void>): void {
  const missing = ['curl', 'jq', ...needs].filter((program) => !isThere(program))
  const reason = missing.length > 0 ? `skipped: not on the PATH: ${missing.join(', ')}` : whyNoMachine()
  test.skipIf(reason !== undefined)(`docs/${name}${reason === undefined ? '' : ` (${reason})`}`, follow)
}

function isThere(program: string): boolean {
  try {
    execFileSync('which', [program], { env: { PATH: searchPath }, stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

type Machine = {
  readonly environment?: Readonly<Record<string, string>>
  /** Shares the network of the tests, for servers that listen there. The page must then not rely on default ports. */
  readonly sharesNetwork?: boolean
}

/** Says why pages cannot run here, or nothing. */
function whyNoMachine(): string | undefined {
  const { status, stderr } = spawnSync('unshare', [...namespaces(false), 'true'], { encoding: 'utf8' })
  return status === 0 ? undefined : `skipped: unshare failed: ${stderr ?? 'it is not on the PATH'}`
}

function namespaces(sharesNetwork: boolean): readonly string[] {
  const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
  return [...user, ...(sharesNetwork ? [] : ['--net']), '--pid', '--fork', '--kill-child', '--mount-proc']
}

/** A shell with a home, a network and processes of its own. All of them end with it. */
export class Reader implements AsyncDisposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'inlet-page-'))
  readonly #shell: ChildProcess
  #output = ''

  constructor({ environment = {}, sharesNetwork = false }: Machine = {}) {
    const bin = join(this.directory, 'bin')
    mkdirSync(bin)
    writeFileSync(join(bin, 'inlet'), `#!/bin/sh\nexec '${process.execPath}' --disable-sigusr1 '${root}/src/main.ts' "$@"\n`)
    chmodSync(join(bin, 'inlet'), 0o755)
    mkdirSync(join(this.directory, 'home'))
    this.#shell = spawn('unshare', [...namespaces(sharesNetwork), 'bash', '-eu', '-o', 'pipefail'], {
      cwd: join(this.directory, 'home'),
      env: {
        HOME: join(this.directory, 'home'),
        PATH: `${bin}${delimiter}${searchPath}`,
        LANG: 'C.UTF-8',
        TERM: 'xterm',
        INLET_CONTROL_LISTEN: '127.0.0.1:8080',
        INLET_INGEST_LISTEN: '127.0.0.1:8081',
        INLET_DISK_RESERVE_BYTES: '0B',
        ...(process.env['NODE_COMPILE_CACHE'] === undefined ? {} : { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] }),
        ...environment,
      },
    })
    for (const stream of [this.#shell.stdout, this.#shell.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text
      })
    if (!sharesNetwork) this.#shell.stdin?.write('ip link set lo up\n')
  }

  /** Runs the blocks of a page, or of some sections. `fill` replaces what a reader fills in, such as a key that was printed. */
  async follow(page: string, fill: (code: string) => string = (code) => code, sections?: readonly string[]): Promise<void> {
    let printed = ''
    const blocks = blocksOf(page)
    const missing = sections?.filter((each) => !blocks.some(({ section }) => section === each)) ?? []
    if (missing.length > 0) throw new Error(`docs/${page} has no commands in: ${missing.join(', ')}`)
    for (const { language, text, line, section } of blocks) {
      if (sections?.includes(section) === false) continue
      if (language === 'sh') printed = await this.run(fill(text), `docs/${page}:${line}`)
      if (language === 'text') assertPrinted(text, printed, `docs/${page}:${line}`)
    }
  }

  /** Runs lines of a shell to their end, and returns what they print. A server that they start goes on, and is ready. */
  async run(code: string, where = 'the commands'): Promise<string> {
    const from = this.#output.length
    const end = `end ${randomUUID()}`
    this.#shell.stdin?.write(`${hurried(stopped(startedInBackground(code)))}\necho '${end}'\n`)
    const hasEnded = () => this.#output.includes(`${end}\n`, from)
    await until(where, () => hasEnded() || this.#shell.exitCode !== null, blockTimeoutMs).catch(() => undefined)
    if (!hasEnded()) {
      const how = this.#shell.exitCode === null ? `did not end in ${blockTimeoutMs / 1_000} s` : 'failed'
      const printed = this.#output.slice(from)
      throw new Error(`${where} ${how}:\n${code}\nIt printed:\n${printed}\nThe terminal of Inlet:\n${this.terminal}`)
    }
    return this.#output.slice(from, this.#output.indexOf(end, from))
  }

  /** Output of Inlet on its terminal, without colours. */
  get terminal(): string {
    try {
      const text = execFileSync('tail', ['--bytes=100000', join(this.directory, 'home/terminal.log')], {
        encoding: 'utf8',
        stdio: 'pipe',
      })
      // biome-ignore lint/suspicious/noControlCharactersInRegex: colours of a terminal
      return text.replaceAll(/\u001b\[[\d;]*m/g, '')
    } catch {
      return ''
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#shell.exitCode === null && this.#shell.signalCode === null) {
      const exited = once(this.#shell, 'exit')
      this.#shell.kill('SIGKILL')
      await exited
    }
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** A reader starts a server at a terminal of its own, and goes on once it is ready and has said so. */
function startedInBackground(code: string): string {
  const isReady = ['CONTROL', 'INGEST'].map(
    (name) => `{ curl -sf http://$INLET_${name}_LISTEN/readyz || curl -skf https://$INLET_${name}_LISTEN/readyz; }`,
  )
  return code.replaceAll(/^inlet start(?: .*)?$/gm, (command) =>
    [
      'rm -f terminal.log',
      `script --quiet --return --flush --command '${command}' terminal.log < /dev/null > /dev/null 2>&1 &`,
      `timeout 60 bash -c 'until ${isReady.join(' && ')} && grep "Inlet is running" terminal.log; do sleep 0.1; done' > /dev/null 2>&1`,
    ].join('\n'),
  )
}

/** A reader presses Ctrl-C in the terminal of a server, and waits until it has ended. */
function stopped(code: string): string {
  const ended = `timeout 60 bash -c 'while pgrep --full "[m]ain.ts start" > /dev/null; do sleep 0.1; done'`
  return code.replaceAll(/^# Stop Inlet.*$/gm, `pkill --signal INT --full 'main.ts start'\n${ended}`)
}

/** A reader waits a minute for a commit. */
function hurried(code: string): string {
  return code.replaceAll(
    /^until inlet commits list (\w+) /gm,
    (wait, endpoint) => `inlet endpoints change ${endpoint} --set segment_max_age_seconds=1 > /dev/null\n${wait}`,
  )
}

/** Fails unless the lines were printed in this order. Spaces of columns may differ. */
function assertPrinted(expected: string, printed: string, where: string): void {
  const lines = printed.split('\n')
  let at = 0
  for (const line of expected.split('\n').filter((each) => each.trim() !== '')) {
    const parts = line
      .trim()
      .split('…')
      .map((part) =>
        part
          .trim()
          .replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
          .replaceAll(/ +/g, String.raw`\s+`),
      )
    const pattern = new RegExp(`^\\s*${parts.join('.*')}\\s*$`)
    const found = lines.findIndex((each, index) => index >= at && pattern.test(each))
    if (found < 0) throw new Error(`${where} expects the line\n  ${line}\nThe commands printed:\n${printed}`)
    at = found + 1
  }
}

/** Readers replace the key of a page by the one that the terminal shows. */
export function withKey(reader: Reader): (code: string) => string {
  return (code) => code.replace('ing_live_…', () => keyOn(reader.terminal))
}

function keyOn(terminal: string): string {
  const [key] = /ing_live_\w+/.exec(terminal) ?? []
  if (key === undefined) throw new Error(`the terminal shows no key:\n${terminal}`)
  return key
}
