/** The Inlet that a command calls over HTTP: of the environment, or of a profile that `inlet login` stored. */
import { type Client, createClient } from '#client/client.ts'
import { nearestName } from '#lib/nearest-name.ts'
import { UserError } from '#lib/user-error.ts'
import type { CliContext } from '../terminal/context.ts'
import { readProfiles } from './profiles.ts'

export const urlDefault = 'http://127.0.0.1:8080'

export type Access = {
  readonly url: string
  readonly apiKey: string
  /** Name of the profile; undefined if the environment has the key. */
  readonly profile: string | undefined
}

export type Remote = { readonly client: Client; readonly apiKey: string; readonly ingestUrl: string | undefined }

/** Throws a UserError without an API key. `timeoutMs` bounds each call. */
export async function openRemote(context: CliContext, { timeoutMs }: { readonly timeoutMs?: number } = {}): Promise<Remote> {
  const { INLET_INGEST_URL: ingestUrl } = await context.readEnvironment()
  const { url, apiKey } = await findAccess(context)
  return { client: createClient({ url, apiKey, timeoutMs }), apiKey, ingestUrl: ingestUrl || undefined }
}

/** Returns whom a command acts as. Throws a UserError if it is nobody. */
export async function findAccess(context: CliContext): Promise<Access> {
  const environment = await context.readEnvironment()
  const { INLET_URL: url, INLET_API_KEY: apiKey, INLET_PROFILE: named } = environment
  if (apiKey) {
    if (named) throw new UserError('INLET_API_KEY and a profile exclude each other: unset one of them')
    return { url: url || urlDefault, apiKey, profile: undefined }
  }
  const { current, profiles } = await readProfiles(environment)
  const name = named || current
  const profile = profiles[name]
  if (profile === undefined) throw new UserError(describeMissing(named, Object.keys(profiles)))
  // The key of a profile is for its own URL only.
  if (url && url !== profile.url)
    throw new UserError(
      `INLET_URL is ${url}, and the profile ${name} is for ${profile.url}: set INLET_API_KEY too, or unset INLET_URL`,
    )
  return { ...profile, profile: name }
}

function describeMissing(named: string | undefined, known: readonly string[]): string {
  if (named === undefined || named === '') return 'not signed in: run inlet login, or set INLET_API_KEY and INLET_URL'
  const nearest = nearestName(named, known)
  return `there is no profile ${named}${nearest === undefined ? `: run inlet --profile ${named} login` : `; did you mean ${nearest}?`}`
}
