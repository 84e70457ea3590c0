/**
 * Confines worker processes with programs of util-linux: limits, no network, no privileges.
 *
 * Owns: which of these this machine allows, and the command line. Does not own: the processes (process-pool.ts).
 * Law: a worker always starts. What is missing or not permitted is left out, and `missing` says so.
 */
import { execFile } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { GiB } from './bytes.ts'
import { errorMessage } from './error-message.ts'
import type { Logger } from './telemetry.ts'

export type SandboxLimits = {
  /** Memory that a process may allocate, besides what Node may reserve. */
  readonly memoryBytes: number
  /** Size of a file that it may write. */
  readonly fileBytes: number
}

/** A way to confine a process: a program that runs the rest of the command line. */
type Layer = { readonly provides: string; readonly program: string; readonly alternatives: readonly (readonly string[])[] }

const limits: Layer = { provides: 'limits of memory and file size', program: 'prlimit', alternatives: [['--core=0']] }

const others: readonly Layer[] = [
  {
    provides: 'no network',
    program: 'unshare',
    // Who is not root may need a user namespace.
    alternatives: [['--net'], ['--user', '--map-current-user', '--net']],
  },
  {
    provides: 'no privileges',
    program: 'setpriv',
    // Root keeps access to its files, which may belong to others.
    alternatives: [
      ['--no-new-privs', '--inh-caps=-all', '--bounding-set=-all,+dac_override', '--pdeathsig', 'KILL'],
      ['--no-new-privs', '--pdeathsig', 'KILL'],
      ['--no-new-privs'],
    ],
  },
]

/** V8 reserves half of it for code at its start, and ends the process if it cannot. */
const nodeBytes = GiB

const directories = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin']
const probeTimeoutMs = 5_000

export class Sandbox {
  /** What workers lack, and why. */
  readonly missing: readonly string[]
  readonly #prlimit: string | undefined
  readonly #others: readonly string[]

  private constructor(prlimit: string | undefined, others: readonly string[], missing: readonly string[]) {
    this.#prlimit = prlimit
    this.#others = others
    this.missing = missing
  }

  /** Tries what this machine allows. Takes some ten milliseconds. */
  static async probe(find: (program: string) => Promise<string> = findProgram): Promise<Sandbox> {
    const missing: string[] = []
    const attempt = async (before: readonly string[], layer: Layer): Promise<readonly string[]> => {
      try {
        return await firstThatWorks(before, layer, find)
      } catch (error) {
        missing.push(`${layer.provides} (${reasonOf(error)})`)
        return []
      }
    }
    const [prlimit] = await attempt([], limits)
    let accepted: readonly string[] = []
    for (const layer of others) accepted = [...accepted, ...(await attempt(accepted, layer))]
    return new Sandbox(prlimit, accepted, missing)
  }

  /** Returns a function that adds the sandbox to a command line. */
  confine({ memoryBytes, fileBytes }: SandboxLimits): (command: readonly string[]) => readonly string[] {
    const bounds = [`--data=${nodeBytes + memoryBytes}`, `--fsize=${fileBytes}`, '--core=0', '--']
    return (command) => [...(this.#prlimit === undefined ? [] : [this.#prlimit, ...bounds]), ...this.#others, ...command]
  }
}

/** Returns the part of a command line that runs the rest in this layer. Throws if none works. */
async function firstThatWorks(
  before: readonly string[],
  { program, alternatives }: Layer,
  find: (program: string) => Promise<string>,
): Promise<readonly string[]> {
  const [path, nothing] = [await find(program), await find('true')]
  let failure: unknown
  for (const options of alternatives) {
    const layer = [path, ...options, '--']
    const [file = '', ...args] = [...before, ...layer, nothing]
    try {
      await promisify(execFile)(file, args, { env: {}, timeout: probeTimeoutMs })
      return layer
    } catch (error) {
      failure ??= error
    }
  }
  throw failure
}

async function findProgram(program: string): Promise<string> {
  for (const directory of directories) {
    const path = join(directory, program)
    try {
      await access(path, constants.X_OK)
      return path
    } catch {
      // The next directory may have it.
    }
  }
  throw new Error(`${program} is not installed`)
}

/** Returns what a program said, without its name. */
function reasonOf(error: unknown): string {
  const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim().split('\n')[0] : ''
  return said || errorMessage(error)
}

let probed: Promise<Sandbox> | undefined

/** Returns the sandbox of this machine, which is probed once, and logs what it lacks. */
export async function openSandbox(logger: Logger): Promise<Sandbox> {
  probed ??= Sandbox.probe()
  const sandbox = await probed
  const { missing } = sandbox
  if (missing.length === 0) logger.info('worker processes are confined')
  else logger.warn({ missing }, 'worker processes are less confined than they could be: see docs/security.md')
  return sandbox
}
