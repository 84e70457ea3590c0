/** Definitions as text: what people edit. The API stores the object, so comments live only while the text is edited. */
import { CST, Document, isMap, isSeq, Lexer, parse, parseDocument } from 'yaml'
import type { Definition, DefinitionFormat } from '../../api/views.ts'

type Column = Definition['columns'][number]

// Lines are never folded: a folded path or condition is hard to read.
const yamlStyle = { lineWidth: 0, singleQuote: true } as const

export function printDefinition(definition: Definition, format: DefinitionFormat): string {
  if (format === 'json') return `${JSON.stringify(definition, null, 2)}\n`
  const document = new Document(definition)
  const columns = document.get('columns')
  // A column per line reads as a table.
  if (isSeq(columns)) for (const column of columns.items) if (isMap(column)) column.flow = true
  return document.toString(yamlStyle)
}

/** Returns what can be read of a text that may be half written; undefined if it does not parse to columns. */
export function readDefinition(text: string, format: DefinitionFormat): Definition | undefined {
  const value = parsed(text, format)
  if (typeof value !== 'object' || value === null || !('columns' in value) || !Array.isArray(value.columns)) return undefined
  const named = value.columns.every((column: unknown) => typeof column === 'object' && column !== null)
  return named ? (value as Definition) : undefined
}

/** Whether a YAML text has comments. A `#` within a value does not begin one. */
export function hasComments(yaml: string): boolean {
  let before = ''
  for (const token of new Lexer().lex(yaml)) {
    // A mark before a value without quotes tells it from a comment.
    if (before !== CST.SCALAR && CST.tokenType(token) === 'comment') return true
    before = token
  }
  return false
}

/** Returns the text with more columns at the end of the list; undefined if the text does not parse. YAML keeps its comments. */
export function addColumns(text: string, format: DefinitionFormat, columns: readonly Column[]): string | undefined {
  if (text.trim() === '') return printDefinition({ columns: [...columns] }, format)
  if (format === 'json') {
    const definition = readDefinition(text, format)
    return definition && printDefinition({ ...definition, columns: [...definition.columns, ...columns] }, format)
  }
  const document = parseDocument(text)
  if (document.errors.length > 0) return undefined
  const list = document.get('columns')
  if (!isSeq(list)) return undefined
  const last = list.items.at(-1)
  for (const column of columns) {
    const node = document.createNode(column)
    if (isMap(node)) node.flow = !isMap(last) || last.flow === true
    list.add(node)
  }
  return document.toString(yamlStyle)
}

/** Returns the definition in the other language; undefined if the text does not parse. A text that is in that language already stays. */
export function convertDefinition(text: string, from: DefinitionFormat, to: DefinitionFormat): string | undefined {
  if (from === to || text.trim() === '') return text
  const definition = readDefinition(text, from)
  if (definition === undefined) return readDefinition(text, to) && text
  return printDefinition(definition, to)
}

function parsed(text: string, format: DefinitionFormat): unknown {
  try {
    return format === 'json' ? JSON.parse(text) : parse(text, { logLevel: 'error' })
  } catch {
    // Half written. The preview says what is wrong.
    return undefined
  }
}
