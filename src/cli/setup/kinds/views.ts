import { UserError } from '#lib/user-error.ts'
import { type Column, type Definition, type Filter, isListFormed } from '#model/definition.ts'
import type { DeclaredView } from '#model/setup.ts'
import type { Account, View } from './account.ts'
import { type Applying, type Change, changedByOthers } from './change.ts'
import type { Declared, DeclaredSetup } from './declared.ts'
import { areSame, changesOf, type Settings, withoutDefaults } from './fields.ts'

const defaults: Settings = { description: '', tags: [] }

/** A change that publishes a version. */
export type ViewChange = Change & { readonly version: number }

type ViewSettings = Omit<DeclaredView, 'name'>

/** The definition has no fields with their default value, so that writing them down changes nothing. */
function settingsOf({ description, tags, definition }: ViewSettings): ViewSettings {
  return { description, tags: [...new Set(tags)].toSorted(), definition: plainDefinition(definition) }
}

function plainDefinition({ columns, filters = [], lists, bloom_filters, ...rest }: Definition): Definition {
  return {
    ...rest,
    ...(bloom_filters === false ? { bloom_filters } : {}),
    columns: columns.map(plainColumn),
    ...(filters.length === 0 ? {} : { filters: filters.map(plainFilter) }),
    // Versions that are older than the choice have none, and files need not say so.
    ...(lists === 'packed' ? { lists } : {}),
  }
}

/** Whether lists are packed although the definition does not say so: the version is older than the choice. */
function isPackedByDefault(definition: Definition): boolean {
  return definition.lists === undefined && isListFormed(definition)
}

/** Returns the settings of a version in the words of the file: one that packs its lists without saying so matches `packed`, and a file that says nothing. */
function settingsAsIn(file: ViewSettings, version: View): ViewSettings {
  const settings = settingsOf(version)
  if (file.definition.lists !== 'packed' || !isPackedByDefault(version.definition)) return settings
  return { ...settings, definition: { ...settings.definition, lists: 'packed' } }
}

function plainColumn({ name, type, path, format, value, hidden, required, cast_failures, ...rest }: Column): Column {
  return {
    ...{ name, type },
    ...(path === undefined ? {} : { path }),
    ...(format === undefined ? {} : { format }),
    ...(value === undefined ? {} : { value }),
    ...(hidden === true ? { hidden } : {}),
    ...(required === true ? { required } : {}),
    ...(cast_failures === 'dlq' ? { cast_failures } : {}),
    ...rest,
  }
}

function plainFilter({ condition, description = '' }: Filter): Filter {
  return { condition, ...(description === '' ? {} : { description }) }
}

export function planViews({ views }: DeclaredSetup, account: Account): readonly ViewChange[] {
  return views.flatMap((declared) => {
    const versions = account.views.get(declared.value.name) ?? []
    const published = versions.find(({ status }) => status === 'published')
    const settings = settingsOf(declared.value)
    if (published === undefined) return [creationOf(declared, versions, settings)]
    const fields = changesOf(settingsAsIn(settings, published), settings)
    return fields.length === 0 ? [] : [changeOf(versions, published, settings, fields)]
  })
}

function creationOf({ value: { name } }: Declared<DeclaredView>, versions: readonly View[], settings: ViewSettings): ViewChange {
  const [newest] = versions
  const version = nextVersion(versions, settings)
  return {
    ...{ action: 'create', kind: 'views', name, version },
    fields: changesOf({}, withoutDefaults(settings, defaults)),
    notes: newest === undefined ? [] : [`version ${version}: version ${newest.version} is ${newest.status}`],
    run: async (applying) => {
      if (newest !== undefined) return publishNext(name, versions, settings, applying)
      const { id } = await applying.client.createView({ name, ...bodyOf(settings), format: 'yaml' })
      await publish(id, applying)
      applying.ids.set('views', name, id)
    },
  }
}

function changeOf(versions: readonly View[], published: View, settings: ViewSettings, fields: Change['fields']): ViewChange {
  const { name } = published
  const version = nextVersion(versions, settings)
  return {
    ...{ action: 'change', kind: 'views', name, fields, version },
    notes: [`version ${published.version} → ${version}, with files in a folder of its own`, ...listNotes(published, settings)],
    run: (applying) => publishNext(name, versions, settings, applying),
  }
}

/** Says that a change of something else changes lists as well. */
function listNotes({ version, definition: before }: View, { definition }: ViewSettings): readonly string[] {
  if (definition.lists === 'packed' || !isPackedByDefault(before) || !isListFormed(definition)) return []
  return [
    `lists hold NULL for each element of [*] without a value, which version ${version} leaves out; to leave them out, set lists: packed`,
  ]
}

function nextVersion(versions: readonly View[], settings: ViewSettings): number {
  const newest = versions[0]?.version ?? 0
  return findOwnDraft(versions, settings) === undefined ? newest + 1 : newest
}

/** Published versions never change, so a change is the next version. */
async function publishNext(name: string, versions: readonly View[], settings: ViewSettings, applying: Applying): Promise<void> {
  const { client, ids } = applying
  const [newest] = versions
  if (newest === undefined) throw new UserError(changedByOthers)
  const now = await client.getView(newest.id)
  if (now.versions[0]?.id !== newest.id || now.status !== newest.status) throw new UserError(changedByOthers)
  const draft = findOwnDraft(versions, settings) ?? (await client.createViewVersion(newest.id, {}))
  if (!areSame(settingsOf(draft), settings)) await client.changeView(draft.id, bodyOf(settings))
  await publish(draft.id, applying)
  ids.set('views', name, draft.id)
}

async function publish(id: string, { client, warn }: Applying): Promise<void> {
  const { warnings } = await client.publishView(id)
  for (const { path, message } of warnings) warn(`${path}: ${message}`)
}

/**
 * Returns the draft of an apply that was interrupted: it is what the files declare, or still a copy of the version before it. Any other draft
 * is the work of somebody.
 */
function findOwnDraft([newest, previous]: readonly View[], settings: ViewSettings): View | undefined {
  if (newest?.status !== 'draft') return undefined
  const content = settingsOf(newest)
  const isCopy = previous !== undefined && areSame(content, settingsOf(previous))
  return isCopy || areSame(content, settings) ? newest : undefined
}

function bodyOf({ description, tags, definition }: ViewSettings) {
  return { description, tags: [...tags], definition: bodyOfDefinition(definition) }
}

export function bodyOfDefinition({ columns, filters, lists, ...rest }: Definition) {
  return {
    ...rest,
    columns: [...columns],
    ...(filters === undefined ? {} : { filters: [...filters] }),
    ...(lists === undefined ? {} : { lists }),
  }
}

/** Drafts are work in progress, and stay. */
export function removalOfView(name: string, versions: readonly View[]): Change {
  return {
    ...{ action: 'delete', kind: 'views', name, fields: [] },
    notes: ['its versions are archived and detached from every endpoint; what is in the bucket stays'],
    run: async ({ client }) => {
      for (const { id, status } of versions) if (status === 'published') await client.archiveView(id)
    },
  }
}

/** Says `packed` also where the version only means it: another account would make the lists aligned. */
export function exportView(view: View): Settings {
  const { definition, ...settings } = settingsOf(view)
  const lists = isPackedByDefault(view.definition) ? { lists: 'packed' } : {}
  return { name: view.name, ...withoutDefaults(settings, defaults), definition: { ...definition, ...lists } }
}
