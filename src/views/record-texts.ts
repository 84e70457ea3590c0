/**
 * The texts that a statement reads from a JSON value, each once, and the fields of the envelope.
 *
 * Owns: the SQL that reads them, and the names of its results. Does not own: their types (extraction.ts).
 */
import { quoteLiteral } from '#duckdb/quote.ts'
import { duckDbPath, type Path } from './json-path.ts'

export type RecordPath = Path & { readonly from: 'record' }
type Extract = 'json_extract' | 'json_extract_string'

/** The texts that a statement reads from a column of JSON. */
export class Texts {
  readonly #json: string
  /** Begins the names of the results. */
  readonly #prefix: string
  readonly #texts: string[] = []
  readonly #jsons: string[] = []
  readonly #lists = new Map<string, string>()
  /** Names of values from list elements, by the SQL that reads them. */
  readonly #ofElements = new Map<string, string>()
  /** Names of the envelope's fields by the SQL that reads them. */
  readonly #envelope = new Map<string, string>()

  constructor(json: string, prefix = '') {
    this.#json = json
    this.#prefix = prefix
  }

  get readsJson(): boolean {
    return this.#texts.length + this.#jsons.length + this.#lists.size > 0
  }

  get readsEnvelope(): boolean {
    return this.#envelope.size > 0
  }

  text(path: string): string {
    return `${this.#prefix}texts[${position(this.#texts, path)}]`
  }

  json(path: string): string {
    return `${this.#prefix}jsons[${position(this.#jsons, path)}]`
  }

  /** Returns the name of the list that a path with [*] finds. Columns with the same array share its elements. */
  eachAt({ steps, isAligned }: RecordPath, extract: Extract): string {
    const end = steps.lastIndexOf('each') + 1
    if (isAligned !== true || end === steps.length) return this.#list(duckDbPath(steps), extract)
    const elements = this.#list(duckDbPath(steps.slice(0, end)), 'json_extract')
    return this.#eachOf(elements, duckDbPath(steps.slice(end)), extract)
  }

  envelope(path: Path & { readonly from: 'envelope' }): string {
    const sql = envelopeSql(path)
    const name = this.#envelope.get(sql) ?? `${this.#prefix}envelope_${this.#envelope.size}`
    this.#envelope.set(sql, name)
    return name
  }

  /** SQL that replaces empty lists by NULL, because a list without values is a missing value, and reads from the elements of lists. */
  finishLists(): string {
    const { replaced, added } = this.listsToFinish()
    return (replaced.length === 0 ? '' : ` REPLACE (${replaced.join(', ')})`) + added.map((each) => `, ${each}`).join('')
  }

  listsToFinish(): { readonly replaced: readonly string[]; readonly added: readonly string[] } {
    return {
      replaced: [...this.#lists.values()].map((name) => `CASE WHEN len(${name}) > 0 THEN ${name} END AS ${name}`),
      added: [...this.#ofElements].map(([sql, name]) => `${sql} AS ${name}`),
    }
  }

  sql(): string {
    const parts = this.parts().map(({ name, sql }) => `${sql} AS ${name}`)
    return [...parts, ...[...this.#envelope].map(([sql, name]) => `${sql} AS ${name}`)].map((part) => `, ${part}`).join('')
  }

  /** The parts that are read from the JSON. */
  parts(): readonly { readonly name: string; readonly sql: string }[] {
    const parts = [...this.#lists].map(([sql, name]) => ({ name, sql }))
    const paths = (of: readonly string[]) => `[${of.map(quoteLiteral).join(', ')}]`
    if (this.#texts.length > 0)
      parts.push({ name: `${this.#prefix}texts`, sql: `json_extract_string(${this.#json}, ${paths(this.#texts)})` })
    if (this.#jsons.length > 0)
      parts.push({ name: `${this.#prefix}jsons`, sql: `json_extract(${this.#json}, ${paths(this.#jsons)})` })
    return parts
  }

  #list(path: string, extract: Extract): string {
    const sql = `${extract}(${this.#json}, ${quoteLiteral(path)})`
    const name = this.#lists.get(sql) ?? `${this.#prefix}list_${this.#lists.size}`
    this.#lists.set(sql, name)
    return name
  }

  /** Reads the path in each element of a list; NULL for those in which it finds nothing. */
  #eachOf(list: string, path: string, extract: Extract): string {
    const found = `list_transform(CASE WHEN len(${list}) > 0 THEN ${list} END, lambda element: ${extract}(element, ${quoteLiteral(path)}))`
    // JSON null is a missing value here too. The other function returns NULL for it.
    const sql =
      extract === 'json_extract' ? `list_transform(${found}, lambda item: CASE WHEN item <> 'null' THEN item END)` : found
    const name = this.#ofElements.get(sql) ?? `${this.#prefix}elements_${this.#ofElements.size}`
    this.#ofElements.set(sql, name)
    return name
  }
}

/** SQL for a field of the envelope. In the table `sources`, `attributes` is JSON. */
function envelopeSql(path: Path & { readonly from: 'envelope' }): string {
  const attribute = (...names: string[]): string =>
    `json_extract_string(attributes, ${quoteLiteral(duckDbPath(names.map((key) => ({ key }))))})`
  switch (path.field) {
    case 'ingested_at':
      return `strftime(make_timestamp(received_at), '%Y-%m-%dT%H:%M:%S.%fZ')`
    case 'content_type':
    case 'address':
    case 'key_name':
      return attribute(path.field)
    case 'user_property':
      return attribute('user_properties', path.name)
    case 'header':
      return attribute('headers', path.name)
    case 'topic':
    case 'client_id':
    case 'protocol':
      return path.field
  }
}

/** Returns the position of the text in the list, counted from 1 as DuckDB does; adds it if it is new. */
function position(texts: string[], text: string): number {
  const at = texts.indexOf(text)
  return at === -1 ? texts.push(text) : at + 1
}
