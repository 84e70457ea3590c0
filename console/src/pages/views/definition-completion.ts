/**
 * Completes words in a definition.
 *
 * Law: it looks only at the text around the cursor, because the text is half written while somebody types.
 */
import type { Completion, CompletionResult } from '@codemirror/autocomplete'
import type { DefinitionFormat } from '../../api/views.ts'
import {
  columnKeys,
  conditionWords,
  definitionKeys,
  envelopePaths,
  filterKeys,
  timeFormats,
  types,
} from './definition-vocabulary.ts'
import type { SamplePath } from './samples.ts'

/** Facts from the samples and the rest of the definition. */
export type CompletionContext = {
  readonly format: DefinitionFormat
  readonly paths: readonly SamplePath[]
  readonly columns: readonly string[]
  /** Names of the account's secrets; none if the person may not see them. */
  readonly secrets: readonly string[]
}

export function completeDefinition(before: string, after: string, context: CompletionContext): CompletionResult | null {
  const [, expand] = expandOf.exec(before) ?? expandOf.exec(after) ?? []
  return completeValue(before, expand, context) ?? completeKey(before, after, context.format)
}

/** The array whose elements are rows. */
const expandOf = /["']?\bexpand["']?\s*:\s*["']?(\$[^"'\s,}]*\[\*\])/

/** The column that the cursor is in, in a list of columns with a line for each. */
const inColumnList = /^(?:dedupe_by|partition_by|sort_by):[ \t]*\n(?:[ \t]*-[^\n]*\n)*[ \t]*-[ \t]*["']?(\w*)$/m

/** The last key of a line, whose value the cursor is in, and what is written of the value. */
const inValue =
  /^.*\b(type|path|format|value|hidden|required|cast_failures|parquet|lists|expand|dedupe_by|dedupe_within|partition_by|sort_by|bloom_filters|condition)["']?\s*:[ \t]*(["']?)([^\n]*)$/

function completeValue(
  before: string,
  expand: string | undefined,
  { format, paths, columns, secrets }: CompletionContext,
): CompletionResult | null {
  const [, ofList] = inColumnList.exec(before) ?? []
  if (ofList !== undefined) return columnOptions(before, ofList, columns)
  const [, key, quote = '', written = ''] = inValue.exec(lastLine(before)) ?? []
  // After the value of a flow map the next key begins.
  if (key === undefined) return null
  if (key === 'dedupe_by' || key === 'partition_by' || key === 'sort_by') return completeColumn(before, written, columns)
  if (key !== 'condition' && key !== 'value' && endsValue(written, quote)) return null
  const from = before.length - written.length
  const quoted = (text: string) => (quote === '' && needsQuotes(text, format) ? quoteFor(text, format) : text)
  switch (key) {
    case 'type':
      return { from, options: types.map((type, index) => option(type, 'type', { apply: quoted(type), boost: -index })) }
    case 'path':
      return { from, options: pathOptions(paths, expand).map((each) => ({ ...each, apply: quoted(each.label) })) }
    case 'expand':
      return { from, options: arrayOptions(paths).map((each) => ({ ...each, apply: quoted(each.label) })) }
    case 'format':
      return {
        from,
        options: Object.entries(timeFormats).map(([word, detail], index) =>
          option(word, 'constant', { apply: quoted(word), detail, boost: -index }),
        ),
      }
    case 'dedupe_within':
      return { from, options: ['1h', '24h', '168h'].map((word) => option(word, 'constant', { apply: quoted(word) })) }
    case 'hidden':
    case 'required':
    case 'bloom_filters':
      return { from, options: ['true', 'false'].map((word) => option(word, 'constant')) }
    case 'cast_failures':
      return {
        from,
        options: ['null', 'dlq'].map((word) => option(word, 'constant', { apply: quote === '' ? `"${word}"` : word })),
      }
    case 'parquet':
      return { from, options: ['native', 'naive'].map((word) => option(word, 'constant', { apply: quoted(word) })) }
    case 'lists':
      return { from, options: ['aligned', 'packed'].map((word) => option(word, 'constant', { apply: quoted(word) })) }
    default:
      return completeSecret(before, written, secrets) ?? completeExpression(before, written, columns)
  }
}

const envelopeOptions: readonly Completion[] = Object.entries(envelopePaths).map(([path, detail]) =>
  option(path, 'variable', { detail, boost: -1 }),
)

function pathOptions(paths: readonly SamplePath[], expand: string | undefined): readonly Completion[] {
  const ofElements =
    expand === undefined
      ? []
      : partsOf(expand).flatMap(([name, start]) => [
          { path: name, kind: name === '$item' ? 'the element' : 'the outer element' },
          ...startingAt(paths, start, name).filter(({ path }) => path !== name),
        ])
  return [...[...ofElements, ...paths].map(({ path, kind }) => option(path, 'property', { detail: kind })), ...envelopeOptions]
}

/** The inner element, and the outer one if there is one. */
function partsOf(expand: string): readonly (readonly [name: string, path: string])[] {
  const end = expand.indexOf('[*]') + '[*]'.length
  return [['$item', expand], ...(end < expand.length ? [['$parent', expand.slice(0, end)] as const] : [])]
}

/** Returns paths below another one, as they are named in it. */
function startingAt(paths: readonly SamplePath[], start: string, name: string): readonly SamplePath[] {
  return paths.flatMap(({ path, kind }) =>
    path === start || (/^[.[]/.test(path.slice(start.length)) && path.startsWith(start))
      ? [{ path: name + path.slice(start.length), kind }]
      : [],
  )
}

/** Arrays that can be expanded. */
function arrayOptions(paths: readonly SamplePath[]): readonly Completion[] {
  const arrays = paths.filter(({ kind }) => kind === 'list').map(({ path }) => `${path}[*]`)
  return arrays
    .filter((path) => path.split('[*]').length <= 3)
    .map((path) => option(path, 'property', { detail: 'a row for each' }))
}

/** The name of a secret. In YAML in single quotes, its quote is written twice. */
function completeSecret(before: string, written: string, secrets: readonly string[]): CompletionResult | null {
  const [, name] = /\bhmac_sha256\(\s*'{1,2}(\w*)$/i.exec(written) ?? []
  if (name === undefined) return null
  const options = secrets.map((each) => option(each, 'constant', { detail: 'secret' }))
  return { from: before.length - name.length, options, validFor: /^\w*$/ }
}

function completeExpression(before: string, written: string, columns: readonly string[]): CompletionResult | null {
  const field = /\$\$\.\w*$/.exec(written)?.[0]
  if (field !== undefined) return { from: before.length - field.length, options: envelopeOptions, validFor: /^\$\$\.\w*$/ }
  const word = /\w*$/.exec(written)?.[0] ?? ''
  if (word === '') return null
  const options = [
    ...columns.map((name) => option(name, 'property', { detail: 'column', boost: 1 })),
    ...conditionWords.map((each) => option(each, 'keyword')),
  ]
  return { from: before.length - word.length, options, validFor: /^\w*$/ }
}

/** In a list in brackets. */
function completeColumn(before: string, written: string, columns: readonly string[]): CompletionResult | null {
  const [, word] = /^\[(?:[^\]]*,)?\s*["']?(\w*)$/.exec(written) ?? []
  return word === undefined ? null : columnOptions(before, word, columns)
}

function columnOptions(before: string, word: string, columns: readonly string[]): CompletionResult {
  const options = columns.map((name) => option(name, 'property', { detail: 'column' }))
  return { from: before.length - word.length, options, validFor: /^\w*$/ }
}

/** A key begins a line or an entry of a list, or comes after a comma or a brace. */
const atKey = { yaml: /(?:^\s*(?:-\s+)?|[{,]\s*)(\w*)$/, json: /(?:^|[{,])\s*("?\w*)$/ } as const

function completeKey(before: string, after: string, format: DefinitionFormat): CompletionResult | null {
  const written = atKey[format].exec(lastLine(before))?.[1]
  if (written === undefined) return null
  const keys = keysAt(before, format)
  const options = Object.entries(keys).map(([key, info], index) =>
    option(key, 'property', {
      info,
      boost: -index,
      apply: format === 'json' ? `"${key}": ` : key === 'columns' || key === 'filters' ? `${key}:` : `${key}: `,
      label: format === 'json' ? `"${key}"` : key,
    }),
  )
  // The editor closes a quote at once: the key brings its own.
  const to = before.length + (written.startsWith('"') && after.startsWith('"') ? 1 : 0)
  return { from: before.length - written.length, to, options }
}

/** Indented text belongs to the list that was opened last. */
function keysAt(before: string, format: DefinitionFormat): Readonly<Record<string, string>> {
  const opened = [...before.matchAll(/\b(columns|filters)["']?\s*:/g)].at(-1)
  const atTop = format === 'yaml' ? /^\w*$/.test(lastLine(before)) : depthOf(before) <= 1
  if (opened === undefined || atTop) return definitionKeys
  return opened[1] === 'columns' ? columnKeys : filterKeys
}

function depthOf(json: string): number {
  const outside = json.replace(/"(?:[^"\\\n]|\\.)*"?/g, '')
  return (outside.match(/[{[]/g)?.length ?? 0) - (outside.match(/[}\]]/g)?.length ?? 0)
}

function endsValue(written: string, quote: string): boolean {
  return quote === '' ? /[,}]/.test(written.replace(/\([^)]*\)?|\[[^\]]*\]?/g, '')) : written.includes(quote)
}

function needsQuotes(text: string, format: DefinitionFormat): boolean {
  return format === 'json' || /[[\]{},"'#*&!|>%@`]/.test(text)
}

function quoteFor(text: string, format: DefinitionFormat): string {
  return format === 'json' ? JSON.stringify(text) : `'${text.replaceAll("'", "''")}'`
}

function lastLine(text: string): string {
  return text.slice(text.lastIndexOf('\n') + 1)
}

function option(label: string, type: string, rest: Partial<Completion> = {}): Completion {
  return { label, type, ...rest }
}
