/** Turns an account into what files declare. A plan of the result has no changes. */
import { mayNeedSecrets, secretsIn } from '#model/secret.ts'
import type { SetupKind } from '#model/setup.ts'
import type { Account } from './kinds/account.ts'
import { exportBinding } from './kinds/bindings.ts'
import { exportDestination } from './kinds/destinations.ts'
import { exportEndpoint } from './kinds/endpoints.ts'
import type { Settings } from './kinds/fields.ts'
import { exportKeys } from './kinds/keys.ts'
import { escapeVariables } from './kinds/variables.ts'
import { exportView } from './kinds/views.ts'

export type Exported = Readonly<Record<SetupKind, readonly Settings[]>>

export function exportAccount(account: Account): Exported {
  const views = [...account.views.values()].flatMap((versions) => versions.find(({ status }) => status === 'published') ?? [])
  return {
    destinations: escaped(sorted([...account.destinations.values()].map(exportDestination))),
    endpoints: escaped(sorted([...account.endpoints.values()].map(exportEndpoint))),
    views: sorted(views.map(exportView)),
    bindings: escaped(account.attachments.map((attachment) => exportBinding(attachment, account))),
    keys: escaped(sorted(exportKeys(account))),
  }
}

/** Returns what is left out, in sentences. */
export function describeOmitted(account: Account): readonly string[] {
  const drafts = [...account.views].filter(([, versions]) => versions[0]?.status === 'draft').map(([name]) => name)
  const repeated = [...Map.groupBy(account.keys ?? [], ({ name }) => name)].filter(([, keys]) => keys.length > 1)
  const older = account.attachments.filter(({ view, version }) => {
    const newest = account.views.get(view)?.find(({ status }) => status === 'published')?.version
    return newest !== undefined && version !== newest
  })
  const needing = [...account.views.values()]
    .flat()
    .filter(({ status, definition }) => status === 'published' && mayNeedSecrets(definition))
  const secrets = secretsIn(needing.map(({ definition }) => definition)).join(', ')
  const hashing = [...new Set(needing.map(({ name }) => name))].join(', ')
  return [
    ...(drafts.length === 0 ? [] : [`Drafts of views are left out: ${drafts.join(', ')}.`]),
    ...(account.draining.size === 0
      ? []
      : [`Endpoints that are being deleted are left out: ${[...account.draining.keys()].join(', ')}.`]),
    ...(needing.length === 0
      ? []
      : [`Values of secrets are left out: create ${secrets} before you apply the files elsewhere, for the views ${hashing}.`]),
    ...older.map(
      ({ endpoint, view, version }) =>
        `Only the newest version of ${view} is written, and ${endpoint} has version ${version}: to apply the files to an account without that version, remove \`version: ${version}\` from the binding.`,
    ),
    ...repeated.map(([name, keys]) => `${keys.length} keys have the name ${name}: the newest is written.`),
    ...(account.keys === undefined
      ? ['The keys are left out: the API key of this command has no scope admin, so it may not list them.']
      : []),
  ]
}

function sorted(entries: readonly Settings[]): readonly Settings[] {
  return entries.toSorted((a, b) => (String(a['name']) < String(b['name']) ? -1 : 1))
}

/** Escapes text that looks like a variable. */
function escaped(entries: readonly Settings[]): readonly Settings[] {
  return JSON.parse(JSON.stringify(entries), (_, value: unknown) => (typeof value === 'string' ? escapeVariables(value) : value))
}
