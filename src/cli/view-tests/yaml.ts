/** Changes parts of a file of tests, and keeps the rest: comments, order, and how values are written. */
import { type Document, isMap, isSeq, Lexer, type ParsedNode, parseAllDocuments, type YAMLMap, type YAMLSeq } from 'yaml'
import type { Pairing, Present } from './compare.ts'

/** A case by its document and index, and what it should say. */
export type CaseEdit = { readonly document: number; readonly index: number; readonly present: Present }

/** Longer rows have a line for each column. */
const flowCharsMax = 100

/** Throws an error if an alias outside of what is replaced refers to it. */
export function editCases(text: string, edits: readonly CaseEdit[]): string {
  const documents = parseAllDocuments(text, { schema: 'core' }) as Document<ParsedNode>[]
  for (const { document: at, index, present } of edits) {
    const document = documents[at]
    const found = document?.getIn(['cases', index])
    if (document === undefined || !isMap(found)) continue
    // Somebody else may have a copy of it.
    if (found.anchor !== undefined) throw new Error(`the case has the anchor &${found.anchor}`)
    editList(document, found, 'rows', present.rows)
    if (present.dropped === 0) found.delete('dropped')
    else found.set('dropped', present.dropped)
    editList(document, found, 'dead_letters', present.deadLetters)
  }
  const options = { lineWidth: 0, flowCollectionPadding: true } as const
  const printed = documents.map((document) => document.toString({ ...options, indentSeq: isIndented(document, text) })).join('')
  if (!/\[[^ \]]/.test(text)) return printed
  const bare = withoutPadding(printed)
  return valuesIn(bare) === valuesIn(printed) ? bare : printed
}

function valuesIn(text: string): string {
  return JSON.stringify(parseAllDocuments(text, { schema: 'core' }).map((document) => document.toJS()))
}

/** Whether lists stand deeper than their key. */
function isIndented({ contents }: Document<ParsedNode>, text: string): boolean {
  const [start = 0] = (isMap(contents) && isSeq(contents.get('cases')) ? contents.get('cases', true)?.range : undefined) ?? []
  return start > text.lastIndexOf('\n', start - 1) + 1
}

const marks: ReadonlySet<string> = new Set(['\u0002', '\u0018', '\u001f'])

/** Writes lists as `[a, b]`, which the library writes like maps: `[ a, b ]`. */
function withoutPadding(text: string): string {
  // The lexer marks documents, scalars and ends of flow collections with tokens that are not in the text.
  const tokens = [...new Lexer().lex(text)].filter((token) => !marks.has(token))
  return tokens.filter((token, index) => token !== ' ' || (tokens[index - 1] !== '[' && tokens[index + 1] !== ']')).join('')
}

/** Entries that pass keep their text, and others change in the fields that differ. */
function editList(document: Document, found: YAMLMap, name: string, pairings: readonly Pairing[]): void {
  const entries = pairings.filter(({ actual }) => actual !== undefined)
  if (entries.length === 0) {
    found.delete(name)
    return
  }
  const before = found.get(name)
  // A list that an alias repeats elsewhere is replaced, not changed: the alias would change with it.
  const known = isSeq(before) && before.anchor === undefined ? before : undefined
  const columns = new Set(known?.items.flatMap((item) => (isMap(item) ? Object.keys(item.toJS(document)) : [])))
  const items = entries.map(({ expected, actual = {}, differing }) => {
    const own = expected === undefined ? undefined : known?.items[expected]
    // As a list that an alias repeats. One that does not change may stay.
    const isShared = isMap(own) && own.anchor !== undefined && differing.length > 0
    if (!isMap(own) || isShared)
      return newEntry(document, actual, name === 'rows' ? columns : new Set(['error_code', 'column', 'item']))
    for (const field of differing) own.set(field, document.createNode(actual[field] ?? null))
    return own
  })
  if (known !== undefined) known.items = items
  else {
    const list = document.createNode([]) as YAMLSeq
    list.items = items
    found.set(name, list)
  }
  if (known !== undefined && items.some((item) => !item.flow)) known.flow = false
}

/** Has the columns that the others have, or all. */
function newEntry(document: Document, actual: NonNullable<Pairing['actual']>, columns: ReadonlySet<string>): YAMLMap {
  const isWanted = ([name, value]: [string, unknown]) =>
    (columns.size === 0 ? true : columns.has(name)) && !(name === 'column' && value === null)
  const fields = Object.fromEntries(Object.entries(actual).filter(isWanted))
  const entry = document.createNode(fields) as YAMLMap
  entry.flow = JSON.stringify(fields).length <= flowCharsMax
  return entry
}
