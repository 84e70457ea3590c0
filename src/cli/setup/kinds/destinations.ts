import { AppError } from '#errors.ts'
import { defaultEncryption, encryptionAfter } from '#model/destination-encryption.ts'
import { hasAllowedBuckets } from '#model/object-store.ts'
import type { DeclaredDestination } from '#model/setup.ts'
import type { Account, Destination } from './account.ts'
import { assertUnchanged, type Change } from './change.ts'
import type { Declared, DeclaredSetup } from './declared.ts'
import { changesOf, type Settings, withoutDefaults } from './fields.ts'
import type { Problems } from './problems.ts'

const defaults: Settings = {
  role_arn: null,
  prefix: '',
  ...defaultEncryption,
  checksums: 'standard',
  path_style: false,
}

/** Encryption and key are settled. */
type Settled = Omit<DeclaredDestination, 'name' | 'encryption'> & Pick<Destination, 'encryption'>

function settingsOf(destination: Settled): Settings {
  const { bucket, region, role_arn, prefix, encryption, kms_key_arn, checksums, path_style } = destination
  const settings = { bucket, region, role_arn, prefix, encryption, kms_key_arn, checksums, path_style }
  return settings satisfies Record<keyof Settled, unknown>
}

export function planDestinations({ destinations }: DeclaredSetup, account: Account, problems: Problems): readonly Change[] {
  return destinations.flatMap((declared) => {
    const settings = settle(declared, account, problems)
    if (settings === undefined) return []
    const { name } = declared.value
    const current = account.destinations.get(name)
    return current === undefined ? [creationOf(name, settings)] : changeOf(current, settings)
  })
}

/** Returns the settings as the API would store them. */
function settle({ value, source }: Declared<DeclaredDestination>, { store }: Account, problems: Problems): Settings | undefined {
  if (value.role_arn === null && !hasAllowedBuckets(store)) {
    source.report(
      problems,
      'role_arn',
      'is required here: the ARN of the role that opens the bucket, such as arn:aws:iam::123456789012:role/ingest',
    )
    return undefined
  }
  try {
    return settingsOf({ ...value, ...encryptionAfter(defaultEncryption, value) })
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    for (const { path, message } of error.errors ?? []) source.report(problems, path, message)
    return undefined
  }
}

function creationOf(name: string, settings: Settings): Change {
  return {
    ...{ action: 'create', kind: 'destinations', name, notes: [] },
    fields: changesOf({}, withoutDefaults(settings, defaults)),
    run: async ({ client, ids }) => {
      const { id } = await client.createDestination({ name, ...settings } as Parameters<typeof client.createDestination>[0])
      ids.set('destinations', name, id)
    },
  }
}

function changeOf(current: Destination, settings: Settings): readonly Change[] {
  const before = settingsOf(current)
  const fields = changesOf(before, settings)
  if (fields.length === 0) return []
  const { id, name } = current
  const change: Change = {
    ...{ action: 'change', kind: 'destinations', name, fields, notes: [] },
    run: async ({ client }) => {
      assertUnchanged(settingsOf(await client.getDestination(id)), before)
      // Encryption and key belong together, so all settings are sent.
      await client.changeDestination(id, settings)
    },
  }
  return [change]
}

export function removalOfDestination({ id, name }: Destination): Change {
  return {
    ...{ action: 'delete', kind: 'destinations', name, fields: [], notes: ['what is in the bucket stays'] },
    run: ({ client }) => client.deleteDestination(id),
  }
}

export function exportDestination(destination: Destination): Settings {
  return { name: destination.name, ...withoutDefaults(settingsOf(destination), defaults) }
}
