/**
 * Parses a definition from YAML or JSON, and finds the line and column of its parts.
 *
 * Owns: turning text into a value, and paths of the value into positions in the text. Does not own: what a definition may contain.
 * Law: the text is hostile. Its size, nesting and aliases are bounded before a recursive parser sees it, only the plain types of YAML's
 * core schema are allowed, and time grows in proportion to the text.
 */
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  visit,
  type YAMLMap,
} from 'yaml'
import { AppError, type FieldError } from '#errors.ts'
import { explainJsonError } from '#lib/json.ts'
import type { DefinitionFormat } from '#model/definition.ts'
import { definitionLimits } from '#model/limits.ts'

export type Locate = <T extends { readonly path: string }>(
  errors: readonly T[],
) => readonly (T & Pick<FieldError, 'line' | 'column'>)[]

export type DefinitionText = {
  readonly value: unknown
  /** Adds to each error the line and column of its path, or of the nearest part that exists. */
  readonly located: Locate
}

/** Throws AppError validation_error with the line and column at which the text cannot be parsed. */
export function parseDefinitionText(text: string, format: DefinitionFormat): DefinitionText {
  const value = format === 'json' ? parseJson(text) : undefined
  const excess = findExcess(text)
  if (excess !== undefined) throw unreadable(excess)
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    schema: 'core',
    merge: false,
    resolveKnownTags: false,
    stringKeys: true,
    // The library compares each key with all others of its map: see findRepeatedKey.
    uniqueKeys: false,
    prettyErrors: false,
  })
  const locate = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return { line, column: col }
  }
  // Text that JSON.parse accepted may break rules of YAML, which do not matter.
  if (format === 'yaml') {
    // The parser only warns about a tag outside of the schema.
    const [problem] = [...document.errors, ...document.warnings]
    if (problem !== undefined) throw unreadable(messageOf(problem), locate(problem.pos[0]))
    if (document.directives?.yaml.explicit === true) throw unreadable('must not have a %YAML directive', locate(0))
  }
  const pairs = new PairIndex()
  const repeated = findRepeatedKey(document, pairs)
  if (repeated !== undefined) throw unreadable('must not have the same key twice in a map', locate(repeated))
  return {
    value: format === 'json' ? value : toValue(document),
    located: (errors) => errors.map((error) => ({ ...error, ...locate(offsetOf(document, pairs, error.path)) })),
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const hint = 'set format to yaml if it is YAML'
    const message = error instanceof Error ? error.message : String(error)
    const at = /\(line (\d+) column (\d+)\)/.exec(message)
    throw unreadable(
      `is not valid JSON: ${explainJsonError(error)} (${hint})`,
      at === null ? undefined : { line: Number(at[1]), column: Number(at[2]) },
    )
  }
}

/**
 * Returns why the text is too large for the parser; undefined if it is not. Its time and stack grow faster than the nesting, and each alias
 * is searched among all anchors.
 */
function findExcess(text: string): string | undefined {
  const { textTokensMax, textIndentMax, textNestingMax, textAliasesMax } = definitionLimits
  const nested = `is nested too deep: at most ${textNestingMax} levels are allowed`
  let tokens = 0
  let depth = 0
  /** Indicators on the line that each add a level of nesting, as in `- - a`. */
  let indicators = 0
  let aliases = 0
  for (const token of new Lexer().lex(text)) {
    tokens += 1
    if (tokens > textTokensMax) return `has too many parts: at most ${textTokensMax} words and punctuation marks are allowed`
    switch (token[0]) {
      case '\n':
      case '\r':
        indicators = 0
        break
      case ' ':
        if (token.length > textIndentMax && token.trim() === '') return `must not be indented by more than ${textIndentMax}`
        break
      case '*':
        aliases += 1
        if (aliases > textAliasesMax) return `has too many aliases: at most ${textAliasesMax} are allowed`
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
        if (token.length === 1 && depth <= 0) indicators += 1
        break
    }
    if (depth > textNestingMax || indicators > textNestingMax) return nested
  }
  return undefined
}

function toValue(document: Document.Parsed): unknown {
  try {
    return document.toJS({ maxAliasCount: definitionLimits.textAliasesMax })
  } catch (error) {
    // The library's errors: an alias without an anchor, or too many aliases.
    throw unreadable(error instanceof Error ? error.message : String(error))
  }
}

/** The entries of each map by key, built once for a map. */
class PairIndex {
  readonly #maps = new WeakMap<YAMLMap, ReadonlyMap<unknown, Pair>>()

  of(map: YAMLMap): ReadonlyMap<unknown, Pair> {
    const known = this.#maps.get(map)
    if (known !== undefined) return known
    // The first entry of a key wins.
    const entries = map.items.toReversed().flatMap((pair) => (isScalar(pair.key) ? [[pair.key.value, pair] as const] : []))
    const byKey = new Map(entries)
    this.#maps.set(map, byKey)
    return byKey
  }
}

/** Returns the offset of a key that its map has twice; undefined if there is none. */
function findRepeatedKey(document: Document.Parsed, pairs: PairIndex): number | undefined {
  let offset: number | undefined
  visit(document, {
    Map(_, map) {
      const byKey = pairs.of(map)
      const repeated = map.items.find((pair) => isScalar(pair.key) && byKey.get(pair.key.value) !== pair)
      offset = isNode(repeated?.key) ? repeated.key.range?.[0] : undefined
      return offset === undefined ? undefined : visit.BREAK
    },
  })
  return offset
}

/** Returns the offset of the part at a dotted path, or of the deepest part on the way to it. */
function offsetOf(document: Document.Parsed, pairs: PairIndex, path: string): number {
  let node: Node | null = document.contents
  let offset = node?.range?.[0] ?? 0
  for (const name of path === '' ? [] : path.split('.')) {
    const resolved: Node | null | undefined = isAlias(node) ? node.resolve(document) : node
    const item: unknown = isMap(resolved)
      ? pairs.of(resolved).get(name)
      : isSeq(resolved)
        ? resolved.items[Number(name)]
        : undefined
    if (item === undefined || item === null) return offset
    const { key, value }: { key?: unknown; value?: unknown } = isNode(item) ? { value: item } : item
    node = isNode(value) ? value : null
    // An omitted value has no position of its own.
    offset = node?.range?.[0] ?? (isNode(key) ? key.range?.[0] : undefined) ?? offset
  }
  return offset
}

function messageOf({ code, message }: { readonly code: string; readonly message: string }): string {
  if (code === 'TAG_RESOLVE_FAILED') return 'must not have tags'
  if (code === 'MULTIPLE_DOCS') return 'must be one document'
  const [first = ''] = message.split('\n')
  return `is not valid YAML: ${first}`
}

function unreadable(message: string, position: { line?: number; column?: number } = {}): AppError {
  return new AppError('validation_error', 'the view definition cannot be parsed', {
    errors: [{ path: '', message, ...position }],
  })
}
