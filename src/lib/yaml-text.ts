/**
 * Reads YAML from people who may be hostile, and finds the line and column of its parts.
 *
 * Owns: turning text into values, and paths of a value into positions in the text. Does not own: what a value may contain.
 * Law: size, nesting and aliases are bounded before a recursive parser sees the text, only the plain types of YAML's core schema are
 * allowed, and time grows in proportion to the text.
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
  parseAllDocuments,
  parseDocument,
  visit,
  type YAMLMap,
} from 'yaml'

/** Bounds on a text: words and punctuation marks, columns of indentation, nesting, and aliases. */
export type YamlBounds = {
  readonly tokensMax: number
  readonly indentMax: number
  readonly nestingMax: number
  readonly aliasesMax: number
}

/** From 1. */
export type TextPosition = { readonly line: number; readonly column: number }

/** The text cannot be read. The message is a predicate: `must not have tags`. */
export class YamlError extends Error {
  override readonly name = 'YamlError'
  /** Undefined if the problem is in no single place. */
  readonly position: TextPosition | undefined

  constructor(message: string, position?: TextPosition) {
    super(message)
    this.position = position
  }
}

const options = {
  schema: 'core',
  merge: false,
  resolveKnownTags: false,
  stringKeys: true,
  // The library compares each key with all others of its map: see findRepeatedKey.
  uniqueKeys: false,
  prettyErrors: false,
} as const

/** Reads a text with one document. Call `validate` unless the text is known to be JSON. Throws YamlError if it exceeds its bounds. */
export function readYaml(text: string, bounds: YamlBounds): YamlPart {
  assertWithin(text, bounds)
  const lines = new LineCounter()
  return new YamlPart(parseDocument(text, { ...options, lineCounter: lines }), lines, bounds)
}

/** Reads a text with any number of documents. Throws YamlError. */
export function readYamlStream(text: string, bounds: YamlBounds): readonly YamlPart[] {
  assertWithin(text, bounds)
  const lines = new LineCounter()
  const documents = parseAllDocuments(text, { ...options, lineCounter: lines })
  return [...documents].map((document) => new YamlPart(document, lines, bounds).validate())
}

/** A document, and where its parts are. */
export class YamlPart {
  readonly #document: Document.Parsed
  readonly #lines: LineCounter
  readonly #bounds: YamlBounds
  readonly #pairs = new PairIndex()

  constructor(document: Document.Parsed, lines: LineCounter, bounds: YamlBounds) {
    this.#document = document
    this.#lines = lines
    this.#bounds = bounds
  }

  /** Throws YamlError for what is not plain YAML. */
  validate(): this {
    const { directives, errors, warnings } = this.#document
    // The parser only warns about a tag outside of the schema.
    const [problem] = [...errors, ...warnings]
    if (problem !== undefined) throw new YamlError(messageOf(problem), this.#position(problem.pos[0]))
    if (directives?.yaml.explicit === true) throw new YamlError('must not have a %YAML directive', this.#position(0))
    this.assertKeysDiffer()
    return this
  }

  /** Throws YamlError for a key that its map has twice. */
  assertKeysDiffer(): void {
    const repeated = findRepeatedKey(this.#document, this.#pairs)
    if (repeated !== undefined) throw new YamlError('must not have the same key twice in a map', this.#position(repeated))
  }

  /** Throws YamlError for an alias without an anchor, or aliases that multiply. */
  toValue(): unknown {
    try {
      return this.#document.toJS({ maxAliasCount: this.#bounds.aliasesMax })
    } catch (error) {
      throw new YamlError(error instanceof Error ? error.message : String(error))
    }
  }

  /** Returns the position of the part at a path, or of the deepest part on the way to it. */
  positionOf(path: readonly string[]): TextPosition {
    return this.#position(offsetOf(this.#document, this.#pairs, path))
  }

  #position(offset: number): TextPosition {
    const { line, col } = this.#lines.linePos(offset)
    return { line, column: col }
  }
}

/** The parser's time and stack grow faster than the nesting, and each alias is searched among all anchors. */
function assertWithin(text: string, { tokensMax, indentMax, nestingMax, aliasesMax }: YamlBounds): void {
  let tokens = 0
  let depth = 0
  /** Indicators on the line that each add a level of nesting, as in `- - a`. */
  let indicators = 0
  let aliases = 0
  for (const token of new Lexer().lex(text)) {
    tokens += 1
    if (tokens > tokensMax)
      throw new YamlError(`has too many parts: at most ${tokensMax} words and punctuation marks are allowed`)
    switch (token[0]) {
      case '\n':
      case '\r':
        indicators = 0
        break
      case ' ':
        if (token.length > indentMax && token.trim() === '') throw new YamlError(`must not be indented by more than ${indentMax}`)
        break
      case '*':
        aliases += 1
        if (aliases > aliasesMax) throw new YamlError(`has too many aliases: at most ${aliasesMax} are allowed`)
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
    if (depth > nestingMax || indicators > nestingMax)
      throw new YamlError(`is nested too deep: at most ${nestingMax} levels are allowed`)
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

/** Returns the offset of the part at a path, or of the deepest part on the way to it. */
function offsetOf(document: Document.Parsed, pairs: PairIndex, path: readonly string[]): number {
  let node: Node | null = document.contents
  let offset = node?.range?.[0] ?? 0
  for (const name of path) {
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
