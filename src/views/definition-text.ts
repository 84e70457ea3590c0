/**
 * A definition from text, YAML or JSON, and the places of its parts there.
 *
 * Owns: how text becomes a value, and where in the text a path of the value is. Does not own: what a definition may say.
 * Law: the text is hostile. It is bounded before a parser that recurses sees it, tags make nothing of it but the plain types of
 * YAML's core schema, and what aliases repeat is counted.
 */
import { type Document, isAlias, isMap, isNode, isScalar, isSeq, Lexer, LineCounter, type Node, parseDocument } from 'yaml'
import { AppError, type FieldError } from '#errors.ts'
import type { DefinitionFormat } from '#model/definition.ts'
import { definitionLimits } from '#model/limits.ts'

export type DefinitionText = {
  readonly value: unknown
  /** The same errors, each with the line and column of its path, or of the nearest part that is there. */
  readonly located: (errors: readonly FieldError[]) => readonly FieldError[]
}

/** Throws AppError validation_error with the place where the text cannot be read. */
export function parseDefinitionText(text: string, format: DefinitionFormat): DefinitionText {
  const value = format === 'json' ? parseJson(text) : undefined
  const tooMuch = excess(text)
  if (tooMuch !== undefined) throw unreadable(tooMuch)
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    schema: 'core',
    merge: false,
    resolveKnownTags: false,
    stringKeys: true,
    uniqueKeys: true,
    prettyErrors: false,
  })
  const locate = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return { line, column: col }
  }
  // A tag that is not of the schema is but a warning to the parser. JSON has been read: of a text that YAML has other rules for, only
  // keys that are there twice matter, which JSON.parse passes over.
  const [problem] = [...document.errors, ...document.warnings].filter(({ code }) => format === 'yaml' || code === 'DUPLICATE_KEY')
  if (problem !== undefined) throw unreadable(messageOf(problem), locate(problem.pos[0]))
  if (format === 'yaml' && document.directives?.yaml.explicit === true)
    throw unreadable('must not have a %YAML directive', locate(0))
  return {
    value: format === 'json' ? value : toValue(document),
    located: (errors) => errors.map((error) => ({ ...error, ...locate(offsetOf(document, error.path)) })),
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const hint = 'text is read as JSON unless format is yaml'
    const message = error instanceof Error ? error.message : String(error)
    const at = /\(line (\d+) column (\d+)\)/.exec(message)
    throw unreadable(`is no JSON: ${message} (${hint})`, at === null ? undefined : { line: Number(at[1]), column: Number(at[2]) })
  }
}

/** What is too much for the parser, whose time and stack grow faster than the text where it is nested. */
function excess(text: string): string | undefined {
  const { textTokensMax, textIndentMax, textNestingMax } = definitionLimits
  const nested = `is nested too deep: at most ${textNestingMax} levels`
  let tokens = 0
  let depth = 0
  /** Marks on the line that each nest what follows, as in `- - a`. */
  let marks = 0
  for (const token of new Lexer().lex(text)) {
    tokens += 1
    if (tokens > textTokensMax) return `has too many parts: at most ${textTokensMax} words and marks`
    switch (token[0]) {
      case '\n':
      case '\r':
        marks = 0
        break
      case ' ':
        if (token.length > textIndentMax && token.trim() === '') return `must not be indented by more than ${textIndentMax}`
        break
      case '[':
      case '{':
        depth += 1
        break
      case ']':
      case '}':
        depth -= 1
        break
      case '-':
      case '?':
      case ':':
        if (token.length === 1 && depth <= 0) marks += 1
        break
    }
    if (depth > textNestingMax || marks > textNestingMax) return nested
  }
  return undefined
}

function toValue(document: Document.Parsed): unknown {
  try {
    return document.toJS({ maxAliasCount: definitionLimits.textAliasesMax })
  } catch (error) {
    // Of the library: an alias without its anchor, or too many of them.
    throw unreadable(error instanceof Error ? error.message : String(error))
  }
}

/** Where the part at a dotted path begins, or the deepest part on the way there. */
function offsetOf(document: Document.Parsed, path: string): number {
  let node: Node | null = document.contents
  let offset = node?.range?.[0] ?? 0
  for (const name of path === '' ? [] : path.split('.')) {
    const whole: Node | null | undefined = isAlias(node) ? node.resolve(document) : node
    const item: unknown = isMap(whole)
      ? whole.items.find(({ key }) => isScalar(key) && key.value === name)
      : isSeq(whole)
        ? whole.items[Number(name)]
        : undefined
    if (item === undefined || item === null) return offset
    const { key, value }: { key?: unknown; value?: unknown } = isNode(item) ? { value: item } : item
    node = isNode(value) ? value : null
    // A value that is left out has no place of its own.
    offset = node?.range?.[0] ?? (isNode(key) ? key.range?.[0] : undefined) ?? offset
  }
  return offset
}

function messageOf({ code, message }: { readonly code: string; readonly message: string }): string {
  if (code === 'TAG_RESOLVE_FAILED') return 'must not have tags'
  if (code === 'MULTIPLE_DOCS') return 'must be one document'
  const [first = ''] = message.split('\n')
  return `is no YAML: ${first}`
}

function unreadable(message: string, place: { line?: number; column?: number } = {}): AppError {
  return new AppError('validation_error', 'the view definition cannot be read', { errors: [{ path: '', message, ...place }] })
}
