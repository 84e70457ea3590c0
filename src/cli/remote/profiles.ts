/**
 * Where `inlet login` keeps which Inlet a user calls, and with which API key.
 *
 * Owns: the file. Does not own: which profile a command uses (remote.ts).
 * Law: only the user can read the file, and a key is only ever sent to the URL that it was stored with.
 */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { errorCode } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'

export type Profile = { readonly url: string; readonly apiKey: string }

export type Profiles = {
  /** Name of the profile that commands use if none is named. */
  readonly current: string
  readonly profiles: Readonly<Record<string, Profile>>
}

type Environment = Readonly<Record<string, string | undefined>>

export const noProfiles: Profiles = { current: 'default', profiles: {} }

export function profilesPath(environment: Environment): string {
  const base = environment['XDG_CONFIG_HOME'] || join(environment['HOME'] || homeOfUser(), '.config')
  return join(base, 'inlet', 'profiles.json')
}

/** As the system knows it. Throws a UserError if there is none. */
function homeOfUser(): string {
  try {
    return userInfo().homedir
  } catch {
    throw new UserError('there is no home directory for profiles: set HOME or XDG_CONFIG_HOME, or INLET_API_KEY and INLET_URL')
  }
}

/** Returns `noProfiles` if there is no file. Throws a UserError if it is damaged. */
export async function readProfiles(environment: Environment): Promise<Profiles> {
  const path = profilesPath(environment)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return noProfiles
    throw new UserError(`cannot read ${path}: ${errorCode(error) ?? error}`)
  }
  const read = parse(text)
  if (read === undefined) throw new UserError(`${path} is damaged: remove it, and run inlet login`)
  return read
}

export async function writeProfiles(environment: Environment, profiles: Profiles): Promise<void> {
  const path = profilesPath(environment)
  const temporary = `${path}.${process.pid}.tmp`
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeFile(temporary, `${JSON.stringify(profiles, undefined, 2)}\n`, { mode: 0o600 })
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined)
    throw new UserError(`cannot write ${path}: ${errorCode(error) ?? error}`)
  }
}

function parse(text: string): Profiles | undefined {
  try {
    const { current, profiles } = JSON.parse(text) as Partial<Profiles>
    if (typeof current !== 'string' || typeof profiles !== 'object' || profiles === null) return undefined
    const isComplete = Object.values(profiles).every(({ url, apiKey }) => URL.canParse(url) && typeof apiKey === 'string')
    return isComplete ? { current, profiles } : undefined
  } catch {
    return undefined
  }
}
