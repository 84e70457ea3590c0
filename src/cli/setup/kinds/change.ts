/** One thing that `inlet apply` does. */
import type { Client } from '#client/client.ts'
import { must } from '#lib/assert.ts'
import { UserError } from '#lib/user-error.ts'
import type { SetupKind } from '#model/setup.ts'
import type { Account } from './account.ts'
import { areSame, type FieldChange } from './fields.ts'

export type Action = 'create' | 'change' | 'delete'

export type Change = {
  readonly action: Action
  readonly kind: SetupKind
  readonly name: string
  readonly fields: readonly FieldChange[]
  /** Consequences of the change, in words. */
  readonly notes: readonly string[]
  readonly run: (applying: Applying) => Promise<void>
}

export type Applying = {
  readonly client: Client
  readonly ids: Ids
  /** Takes the secret of a new key, which is shown once. */
  readonly keepSecret: (name: string, secret: string) => Promise<void>
  /** Takes what the API warns of, although it made the change. */
  readonly warn: (warning: string) => void
}

export const singular: Readonly<Record<SetupKind, string>> = {
  destinations: 'destination',
  endpoints: 'endpoint',
  views: 'view',
  bindings: 'binding',
  keys: 'key',
}

/** Ids by name, with those of what was created meanwhile. Of a view, the newest published version. */
export class Ids {
  readonly #ids = new Map<string, string>()

  constructor({ destinations, endpoints, views }: Account) {
    for (const { name, id } of destinations.values()) this.set('destinations', name, id)
    for (const { name, id } of endpoints.values()) this.set('endpoints', name, id)
    for (const versions of views.values()) {
      const published = versions.filter(({ status }) => status === 'published')
      for (const { name, version, id } of published) this.#ids.set(`${name} version ${version}`, id)
      const [newest] = published
      if (newest !== undefined) this.set('views', newest.name, newest.id)
    }
  }

  getVersion(view: string, version: number): string {
    return must(this.#ids.get(`${view} version ${version}`), `version ${version} of the view ${view}`)
  }

  set(kind: 'destinations' | 'endpoints' | 'views', name: string, id: string): void {
    this.#ids.set(`${kind} ${name}`, id)
  }

  get(kind: 'destinations' | 'endpoints' | 'views', name: string): string {
    return must(this.#ids.get(`${kind} ${name}`), `the id of ${singular[kind]} ${name}`)
  }
}

/** Throws a UserError unless what is there now is what the plan was made for. */
export function assertUnchanged(now: unknown, planned: unknown): void {
  if (!areSame(now, planned)) throw new UserError(changedByOthers)
}

export const changedByOthers = 'was changed by somebody else since it was planned: look at the new plan'
