/** Compares settings, and what was there before. */
import { isDeepStrictEqual } from 'node:util'

/** Settings by the names of fields. Lists whose order does not matter are sorted. */
export type Settings = Readonly<Record<string, unknown>>

/** Undefined: the field is not there. */
export type FieldChange = { readonly path: string; readonly before?: unknown; readonly after?: unknown }

export function areSame(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(one, other)
}

/** Returns what differs. Objects are compared field by field, lists as a whole. */
export function changesOf(before: Settings, after: Settings, path = ''): readonly FieldChange[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names].flatMap((name) => {
    const [old, next] = [before[name], after[name]]
    if (areSame(old, next)) return []
    const at = path === '' ? name : `${path}.${name}`
    if (isObject(old) && isObject(next) && name !== 'definition') return changesOf(old, next, at)
    return [{ path: at, ...(old === undefined ? {} : { before: old }), ...(next === undefined ? {} : { after: next }) }]
  })
}

/** Returns the settings that a file must have: those that differ from their defaults. */
export function withoutDefaults(settings: Settings, defaults: Settings): Settings {
  return Object.fromEntries(Object.entries(settings).filter(([name, value]) => !areSame(value, defaults[name])))
}

function isObject(value: unknown): value is Settings {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
