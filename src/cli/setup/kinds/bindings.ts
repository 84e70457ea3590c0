/**
 * Plans the attachment and detachment of views.
 *
 * A binding without a version follows its view: a new version is attached before the old one is detached, so that no segment falls in between.
 */

import { UserError } from '#lib/user-error.ts'
import { ruleOf } from '#model/binding.ts'
import type { DeclaredBinding } from '#model/setup.ts'
import type { Account, Attachment } from './account.ts'
import { type Applying, type Change, changedByOthers } from './change.ts'
import type { Declared, DeclaredSetup } from './declared.ts'
import { areSame, changesOf, type Settings, withoutDefaults } from './fields.ts'
import { missing, type Problems } from './problems.ts'
import type { ViewChange } from './views.ts'

const defaults: Settings = { is_required: false, canary_start_ts: null }

type Terms = Omit<DeclaredBinding, 'endpoint' | 'view' | 'version'>

/** A rule that the file leaves out is the one that is there: bindings from before there were rules have none, and keep none. */
const termsOf = ({ is_required, canary_start_ts, canary_rule }: Terms, hasRule = canary_rule !== undefined): Settings => ({
  ...{ is_required, canary_start_ts },
  ...(hasRule ? { canary_rule } : {}),
})
const groupOf = ({ endpoint, view }: Pick<Attachment, 'endpoint' | 'view'>) => JSON.stringify([endpoint, view])

/** `changed` are the views that get a new version. */
export function planBindings(
  setup: DeclaredSetup,
  account: Account,
  changed: readonly ViewChange[],
  problems: Problems,
): readonly Change[] {
  const attached = Map.groupBy(account.attachments, groupOf)
  const declared = Map.groupBy(setup.bindings, ({ value }) => groupOf(value))
  const renewed = new Map(changed.map(({ name, version }) => [name, version]))
  return setup.bindings.flatMap((binding) => {
    if (!hasReferences(binding, setup, account, problems)) return []
    const { endpoint, view, version } = binding.value
    const versions = account.views.get(view) ?? []
    const newest = renewed.get(view) ?? versions.find(({ status }) => status === 'published')?.version
    const group = declared.get(groupOf(binding.value)) ?? []
    const pinned = group.flatMap(({ value }) => value.version ?? [])
    if (version === undefined && newest !== undefined && pinned.includes(newest)) {
      binding.source.report(
        problems,
        'view',
        `has version ${newest}, which another binding of the endpoint names: leave one of them out`,
      )
      return []
    }
    const present = account.endpoints.has(endpoint) ? (attached.get(groupOf(binding.value)) ?? []) : []
    const target = version ?? newest
    const same = present.find((each) => each.version === target)
    // A binding that follows its view replaces all versions that no other binding names.
    const old = version === undefined ? present.filter((each) => each !== same && !pinned.includes(each.version)) : []
    return changesFor(binding.value, target, same, old)
  })
}

function hasReferences(
  { value, source }: Declared<DeclaredBinding>,
  setup: DeclaredSetup,
  account: Account,
  problems: Problems,
): boolean {
  const { endpoint, view, version } = value
  const before = problems.count
  if (!setup.names.endpoints.has(endpoint) && !account.endpoints.has(endpoint))
    source.report(problems, 'endpoint', missing('endpoint', endpoint, [...setup.names.endpoints, ...account.endpoints.keys()]))
  const published = (account.views.get(view) ?? []).filter(({ status }) => status === 'published')
  if (!setup.names.views.has(view) && published.length === 0)
    source.report(problems, 'view', missing('published view', view, [...setup.names.views, ...account.views.keys()]))
  else if (version !== undefined && !published.some((each) => each.version === version)) {
    const known = published.map((each) => each.version).join(', ')
    source.report(
      problems,
      'version',
      `the view ${view} has no published version ${version}${known === '' ? '' : `: published ${published.length === 1 ? 'is' : 'are'} ${known}`}. Leave it out for the newest one`,
    )
  }
  return problems.count === before
}

/** `same` is what is attached of the version that is wanted, and `old` are the versions that it replaces. */
function changesFor(
  binding: DeclaredBinding,
  target: number | undefined,
  same: Attachment | undefined,
  old: readonly Attachment[],
): readonly Change[] {
  const after = termsOf(binding)
  const hasRule = binding.canary_rule !== undefined
  const isSame = same !== undefined && areSame(termsOf(same, hasRule), after)
  if (isSame && old.length === 0) return []
  const of = { kind: 'bindings', name: nameOf(binding) } as const
  const before = same ?? old.at(-1)
  if (before === undefined) {
    const fields = changesOf({}, withoutDefaults(after, defaults))
    return [{ ...of, action: 'create', fields, notes: [], run: (applying) => attach(binding, applying) }]
  }
  const versions = [...old, ...(same === undefined ? [] : [same])].map(({ version }) => version)
  const moved = { path: 'version', before: versions.length === 1 ? versions[0] : versions, after: target }
  const replaced = isSame ? undefined : same
  return [
    {
      ...{ ...of, action: 'change', notes: replaced === undefined ? [] : [gap] },
      fields: [...(old.length === 0 ? [] : [moved]), ...changesOf(termsOf(before, hasRule), after)],
      run: (applying) => replace(binding, { isAttached: isSame, replaced, old }, applying),
    },
  ]
}

const gap =
  'detached and attached again: segments sealed in that moment do not go through the view; inlet views backfill repeats them'

type Replacement = {
  readonly isAttached: boolean
  /** The same version with other terms, of which the API allows one. */
  readonly replaced: Attachment | undefined
  readonly old: readonly Attachment[]
}

async function replace(binding: DeclaredBinding, { isAttached, replaced, old }: Replacement, applying: Applying): Promise<void> {
  const { client, ids } = applying
  const id = ids.get('endpoints', binding.endpoint)
  const { items } = await client.listBindings(id)
  const isThere = (each: Attachment) => items.some((now) => now.id === each.id && now.status === 'active')
  if (![...old, ...(replaced === undefined ? [] : [replaced])].every(isThere)) throw new UserError(changedByOthers)
  if (replaced !== undefined) await client.detachView(id, replaced.id)
  if (!isAttached) await attach(binding, applying)
  for (const each of old) await client.detachView(id, each.id)
}

async function attach(
  { endpoint, view, version, is_required, canary_start_ts, canary_rule }: DeclaredBinding,
  { client, ids, warn }: Applying,
): Promise<void> {
  const id = ids.get('endpoints', endpoint)
  const view_id = version === undefined ? ids.get('views', view) : ids.getVersion(view, version)
  const terms = { view_id, is_required, canary_start_ts, ...(canary_rule === undefined ? {} : { canary_rule }) }
  const { warnings } = await client.attachView(id, terms)
  for (const warning of warnings) warn(warning)
}

export function nameOf({ endpoint, view, version }: Pick<DeclaredBinding, 'endpoint' | 'view' | 'version'>): string {
  return `${endpoint} → ${view}${version === undefined ? '' : ` version ${version}`}`
}

/** Returns what no binding in the files stands for. */
export function undeclaredAttachments({ bindings }: DeclaredSetup, { attachments }: Account): readonly Attachment[] {
  const declared = Map.groupBy(bindings, ({ value }) => groupOf(value))
  return attachments.filter((attachment) => {
    const group = declared.get(groupOf(attachment)) ?? []
    return !group.some(({ value: { version } }) => version === undefined || version === attachment.version)
  })
}

export function removalOfBinding(attachment: Attachment): Change {
  return {
    ...{
      action: 'delete',
      kind: 'bindings',
      name: nameOf(attachment),
      fields: [],
      notes: ['what the view delivered stays in the bucket'],
    },
    run: ({ client, ids }) => client.detachView(ids.get('endpoints', attachment.endpoint), attachment.id),
  }
}

/** A version that is not the newest published one is named, so that the file means what is there. */
export function exportBinding(attachment: Attachment, { views }: Account): Settings {
  const { endpoint, view, version } = attachment
  const newest = views.get(view)?.find(({ status }) => status === 'published')?.version
  const pinned = version === newest ? {} : { version }
  const { canary_start_ts, canary_rule } = attachment
  const hasDefaultRule = areSame(canary_rule, ruleOf({ canary_start_ts }))
  return { endpoint, view, ...pinned, ...withoutDefaults(termsOf(attachment, !hasDefaultRule), defaults) }
}
