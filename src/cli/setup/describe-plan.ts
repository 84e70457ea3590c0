/** Shows a plan to people and to programs. Secrets are in no plan. */
import type { Definition } from '#model/definition.ts'
import { type SetupKind, setupKinds } from '#model/setup.ts'
import { type Action, type Change, singular } from './kinds/change.ts'
import type { FieldChange } from './kinds/fields.ts'
import { printable } from './kinds/problems.ts'
import { diffLines } from './line-diff.ts'
import type { Plan } from './plan.ts'
import { printDefinition } from './yaml.ts'

const marks: Readonly<Record<Action, string>> = { create: '+', change: '~', delete: '-' }
const colors: Readonly<Record<string, number>> = { '+': 32, '~': 33, '-': 31, '…': 2 }

export type Paint = (mark: string, text: string) => string
export const plain: Paint = (_, text) => text
export const colored: Paint = (mark, text) => (colors[mark] === undefined ? text : `\u001b[${colors[mark]}m${text}\u001b[0m`)

export function describePlan({ changes, kept, notes }: Plan, paint: Paint): string {
  const parts = changes.map((change) => describeChange(change, paint))
  const counts = changes.length === 0 ? 'No changes: the account is as the files say.' : `${countChanges(changes)}.`
  return [...parts, counts, ...describeKept(kept), ...notes.map(printable)].join('\n\n').concat('\n')
}

/** Returns `2 to create, 1 to change, 0 to delete`. */
function countChanges(changes: readonly Change[]): string {
  return Object.entries(count(changes))
    .map(([action, number]) => `${number} to ${action}`)
    .join(', ')
}

export function planToJson({ changes, kept, notes }: Plan) {
  return { changes: changes.map(changeToJson), counts: count(changes), kept, notes }
}

export function changeToJson({ action, kind, name, fields, notes }: Change) {
  return { action, kind, name, fields, notes }
}

function count(changes: readonly Change[]): Readonly<Record<Action, number>> {
  const of = (action: Action) => changes.filter((change) => change.action === action).length
  return { create: of('create'), change: of('change'), delete: of('delete') }
}

function describeChange({ action, kind, name, fields, notes }: Change, paint: Paint): string {
  const head = paint(marks[action], `${marks[action]} ${singular[kind]} ${printable(name)}`)
  const lines = fields.flatMap((field) => describeField(field, action, paint))
  return [`  ${head}`, ...lines.map((line) => `      ${line}`), ...notes.map((note) => `      (${printable(note)})`)].join('\n')
}

function describeField({ path, before, after }: FieldChange, action: Action, paint: Paint): readonly string[] {
  if (isText(before) || isText(after) || path === 'definition') {
    if (before === undefined) return [`${path}:`, ...linesOf(after).map((text) => `  ${printLine(text)}`)]
    const lines = diffLines(textOf(before), textOf(after))
    return [`${path}:`, ...lines.map(({ mark, text }) => `  ${paint(mark, `${mark} ${printLine(text)}`.trimEnd())}`)]
  }
  if (action === 'create' && before === undefined) return [`${path}: ${printValue(after)}`]
  return [`${path}: ${printValue(before)} → ${printValue(after)}`]
}

/** Text of several lines. */
function isText(value: unknown): value is string {
  return typeof value === 'string' && value.includes('\n')
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : printDefinition(value as Definition)
}

function linesOf(value: unknown): readonly string[] {
  return textOf(value).replace(/\n$/, '').split('\n')
}

function printLine(text: string): string {
  return printable(text.replaceAll('\t', '  '))
}

function printValue(value: unknown): string {
  if (value === undefined || value === null) return 'none'
  if (typeof value === 'string') return value === '' ? '""' : printable(value)
  if (Array.isArray(value)) return `[${value.map(printValue).join(', ')}]`
  if (typeof value !== 'object') return String(value)
  return `{ ${Object.entries(value)
    .map(([name, inner]) => `${name}: ${printValue(inner)}`)
    .join(', ')} }`
}

function describeKept(kept: Plan['kept']): readonly string[] {
  if (kept.length === 0) return []
  const byKind = Map.groupBy(kept, ({ kind }) => kind)
  const lines = setupKinds.flatMap((kind: SetupKind) => {
    const names = byKind.get(kind)?.map(({ name }) => printable(name)) ?? []
    if (names.length === 0) return []
    const more = names.length - namesShown
    return [`  ${kind}: ${names.slice(0, namesShown).join(', ')}${more > 0 ? `, and ${more} more` : ''}`]
  })
  return [['Not in the files, and kept:', ...lines].join('\n')]
}

const namesShown = 20
