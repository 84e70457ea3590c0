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
import { UserError } from './user-error.ts'

export type SandboxLimits = {
  /** Memory that a process may allocate, besides what Node may reserve. */
  readonly memoryBytes: number
  /** Size of a file that it may write. */
  readonly fileBytes: number
}

/** User and group that a worker runs as. */
export type WorkerUser = { readonly uid: number; readonly gid: number }

/** A way to confine a process: a program that runs the rest of the command line. */
type Layer = { readonly provides: string; readonly program: string; readonly alternatives: readonly (readonly string[])[] }

const limits: Layer = { provides: 'limits of memory and file size', program: 'prlimit', alternatives: [['--core=0']] }

const noNetwork: Layer = {
  provides: 'no network',
  program: 'unshare',
  // Processes of other users than root may need a user namespace.
  alternatives: [['--net'], ['--user', '--map-current-user', '--net']],
}

const noPrivileges: Layer = {
  provides: 'no privileges',
  program: 'setpriv',
  // Root keeps access to its files, which may belong to others.
  alternatives: [
    ['--no-new-privs', '--inh-caps=-all', '--bounding-set=-all,+dac_override', '--pdeathsig', 'KILL'],
    ['--no-new-privs', '--pdeathsig', 'KILL'],
    ['--no-new-privs'],
  ],
}

/** Members of the worker's group can read and remove what it writes. */
const openToGroup: Layer = { provides: 'files for the group', program: 'sh', alternatives: [['-c', 'umask 007; exec "$@"']] }

/** V8 reserves half of it for code at its start, and ends the process if it cannot. */
const nodeBytes = GiB

/** Hard limits that an operator has set for this process. Infinite if there is none. */
type HardLimits = { readonly dataBytes: number; readonly fileBytes: number }

type FindProgram = (program: string) => Promise<string>

const directories = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin']
const probeTimeoutMs = 5_000

export class Sandbox {
  /** Restrictions that workers lack, and why. */
  readonly missing: readonly string[]
  /** Whom workers run as, if not as this process. */
  readonly user: WorkerUser | undefined
  readonly #prlimit: string | undefined
  readonly #hardLimits: HardLimits
  readonly #network: readonly string[]
  readonly #privileges: readonly string[]

  private constructor(parts: {
    readonly prlimit: string | undefined
    readonly hardLimits: HardLimits
    readonly network: readonly string[]
    readonly privileges: readonly string[]
    readonly missing: readonly string[]
    readonly user?: WorkerUser
  }) {
    this.#prlimit = parts.prlimit
    this.#hardLimits = parts.hardLimits
    this.#network = parts.network
    this.#privileges = parts.privileges
    this.missing = parts.missing
    this.user = parts.user
  }

  /** Tries what this machine allows. Takes some ten milliseconds. */
  static async probe(find: FindProgram = findProgram): Promise<Sandbox> {
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
    const hardLimits = await readHardLimits(prlimit)
    const network = await attempt([], noNetwork)
    const privileges = await attempt(network, noPrivileges)
    return new Sandbox({ prlimit, hardLimits, network, privileges, missing })
  }

  /** Returns a sandbox whose workers run as another user. Throws UserError if this is not possible. */
  async as(user: WorkerUser, find: FindProgram = findProgram): Promise<Sandbox> {
    const { uid, gid } = user
    const change = [
      '--clear-groups',
      `--reuid=${uid}`,
      `--regid=${gid}`,
      '--no-new-privs',
      '--inh-caps=-all',
      '--bounding-set=-all',
      '--pdeathsig',
      'KILL',
    ]
    const network = this.#network
    try {
      const other = await firstThatWorks(network, { ...noPrivileges, alternatives: [change] }, find)
      const privileges = [...other, ...(await firstThatWorks([...network, ...other], openToGroup, find))]
      const read = ['-e', 'require("node:fs").readFileSync(process.argv[1])', import.meta.filename]
      await run([...network, ...privileges, process.execPath, ...read])
      const [prlimit, hardLimits] = [this.#prlimit, this.#hardLimits]
      return new Sandbox({ prlimit, hardLimits, network, privileges, missing: this.missing, user })
    } catch (error) {
      throw new UserError(
        `INLET_WORKER_USER: workers cannot run as user ${uid} (${reasonOf(error)}); run Inlet as root, and let the user read the program`,
      )
    }
  }

  /** Returns a function that adds the sandbox to a command line. */
  confine({ memoryBytes, fileBytes }: SandboxLimits): (command: readonly string[]) => readonly string[] {
    const dataBytes = Math.min(nodeBytes + memoryBytes, this.#hardLimits.dataBytes)
    const bounds = [`--data=${dataBytes}`, `--fsize=${Math.min(fileBytes, this.#hardLimits.fileBytes)}`, '--core=0', '--']
    return (command) => [
      ...(this.#prlimit === undefined ? [] : [this.#prlimit, ...bounds]),
      ...this.#network,
      ...this.#privileges,
      ...command,
    ]
  }
}

/** Returns the limits of this process. Only root may exceed them. */
async function readHardLimits(prlimit: string | undefined): Promise<HardLimits> {
  const hardLimit = async (resource: string): Promise<number> => {
    if (prlimit === undefined) return Number.POSITIVE_INFINITY
    const bytes = await run([prlimit, `--${resource}`, '--output=HARD', '--noheadings'])
    return /^\d+$/.test(bytes) ? Number(bytes) : Number.POSITIVE_INFINITY
  }
  return { dataBytes: await hardLimit('data'), fileBytes: await hardLimit('fsize') }
}

/** Returns the part of a command line that runs the rest in this layer. Throws if none works. */
async function firstThatWorks(
  before: readonly string[],
  { program, alternatives }: Layer,
  find: FindProgram,
): Promise<readonly string[]> {
  const [path, nothing] = [await find(program), await find('true')]
  let failure: unknown
  for (const options of alternatives) {
    const layer = [path, ...options, '--']
    try {
      await run([...before, ...layer, nothing])
      return layer
    } catch (error) {
      failure ??= error
    }
  }
  throw failure
}

/** Returns what the program wrote. */
async function run([file = '', ...args]: readonly string[]): Promise<string> {
  return (await promisify(execFile)(file, args, { env: {}, timeout: probeTimeoutMs })).stdout.trim()
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

/** Returns the sandbox of this machine, which is probed once, and logs what it lacks. Throws UserError if workers cannot run as the user. */
export async function openSandbox(logger: Logger, user: WorkerUser | null): Promise<Sandbox> {
  probed ??= Sandbox.probe()
  const sandbox = await probed
  const { missing } = sandbox
  if (missing.length === 0) logger.info('worker processes are confined')
  else logger.warn({ missing }, 'worker processes are less confined than they could be: see docs/security.md')
  return user === null ? sandbox : await sandbox.as(user)
}
