/** `inlet login`, `logout` and `profiles`: which Inlet the other commands call, and as whom. */
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { isApiKey } from '#client/api-key.ts'
import { type Client, createClient } from '#client/client.ts'
import { ApiError } from '#client/errors.ts'
import { isLoopback } from '#lib/ip-addresses.ts'
import { UserError } from '#lib/user-error.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'
import { printJson } from '../terminal/print-json.ts'
import { toTable } from '../terminal/table.ts'
import { profilesPath, readProfiles, writeProfiles } from './profiles.ts'
import { urlDefault } from './remote.ts'

export type LoginFlags = { readonly keyFile?: string }
export type ListProfilesFlags = { readonly json: boolean }

const scopes = ['admin', 'query', 'metrics', 'ingest'] as const
const timeoutMs = 15_000

/** Checks the key before it is stored. */
export async function login(this: CliContext, { keyFile }: LoginFlags, address: string | undefined): Promise<void> {
  const environment = await this.readEnvironment()
  const stored = await readProfiles(environment)
  const name = environment['INLET_PROFILE'] || stored.current
  if (!/^[\w.-]{1,64}$/.test(name)) throw new UsageError('a profile has a name of letters, digits, "-", "_" and "."')
  const url = address ?? (environment['INLET_URL'] || stored.profiles[name]?.url || urlDefault)
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
    throw new UsageError(`URL: must begin with http:// or https://, not ${JSON.stringify(url)}`)
  const { protocol, hostname } = new URL(url)
  if (protocol === 'http:' && !isLoopback(hostname))
    this.process.stderr.write(`Warning: ${url} is not encrypted: others on the way can read the key. Use https.\n`)
  const apiKey = (await readKey(keyFile, url, this)).trim()
  if (!isApiKey(apiKey))
    throw new UserError(
      apiKey === '' ? 'no API key was given' : 'this is no API key: it has a space or a character outside ASCII',
    )
  const allowed = await scopesOf(createClient({ url, apiKey, timeoutMs, retriesMax: 1 }), apiKey)
  await writeProfiles(environment, { current: name, profiles: { ...stored.profiles, [name]: { url, apiKey } } })
  this.process.stdout.write(
    `Signed in to ${url} as profile ${name}. The key may: ${allowed.join(', ')}.\nIt is stored in ${profilesPath(environment)}, which only you can read.\n`,
  )
}

/** Forgets the key on this machine. It stays valid until it is revoked. */
export async function logout(this: CliContext): Promise<void> {
  const environment = await this.readEnvironment()
  const { current, profiles } = await readProfiles(environment)
  const name = environment['INLET_PROFILE'] || current
  const { [name]: removed, ...rest } = profiles
  if (removed === undefined) throw new UserError(`there is no profile ${name}`)
  await writeProfiles(environment, { current: name === current ? (Object.keys(rest)[0] ?? 'default') : current, profiles: rest })
  this.process.stdout.write(`The profile ${name} is removed. Its key stays valid: to revoke it, use inlet keys revoke.\n`)
}

export async function listProfiles(this: CliContext, { json }: ListProfilesFlags): Promise<void> {
  const { current, profiles } = await readProfiles(await this.readEnvironment())
  const all = Object.entries(profiles).map(([name, { url, apiKey }]) => ({
    ...{ name, url, key: `${apiKey.slice(0, 12)}…`, is_current: name === current },
  }))
  if (json) printJson(this, all)
  else if (all.length === 0) this.process.stdout.write('There are no profiles. Create one with inlet login.\n')
  else
    this.process.stdout.write(
      toTable([['', 'NAME', 'URL', 'KEY'], ...all.map((each) => [each.is_current ? '*' : '', each.name, each.url, each.key])]),
    )
}

/** Returns what the key may do. Throws a UserError if control does not know it. */
async function scopesOf(client: Client, apiKey: string): Promise<readonly string[]> {
  const allowed: string[] = []
  for (const scope of scopes) {
    try {
      await client.exchangeToken({ api_key: apiKey, scope })
      allowed.push(scope)
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 403) throw error
    }
  }
  return allowed
}

/** Not as an argument: other users of the machine see those, and shells keep them. */
async function readKey(file: string | undefined, url: string, { process: { stderr } }: CliContext): Promise<string> {
  if (file !== undefined && file !== '-')
    return readFile(file, 'utf8').catch((error: Error) => {
      throw new UserError(`cannot read the key: ${error.message}`)
    })
  if (file === '-' || process.stdin.isTTY !== true) return text(process.stdin)
  stderr.write(`API key for ${url} (it is not shown): `)
  const hidden = new Writable({ write: (_chunk, _encoding, done) => done() })
  const prompt = createInterface({ input: process.stdin, output: hidden, terminal: true })
  const stopping = new AbortController()
  prompt.once('SIGINT', () => stopping.abort())
  try {
    return await prompt.question('', { signal: stopping.signal })
  } catch {
    throw new UserError('interrupted')
  } finally {
    prompt.close()
    stderr.write('\n')
  }
}
