/**
 * Loads DuckDB's client.
 *
 * Law: text that JavaScript reads is the text that DuckDB has. The client decodes all text with one decoder, which takes U+FEFF at the start of
 * a value for a byte order mark and removes it: a record would lose three bytes, and begin to be JSON.
 */
export type Library = typeof import('@duckdb/node-api')
/** The interface below the library: it writes lists without an object for each item. */
export type Bindings = typeof import('@duckdb/node-bindings')

/** Call it with the first database: an idle process needs neither the library nor its memory. */
export async function loadLibrary(): Promise<{ readonly library: Library; readonly bindings: Bindings }> {
  const library = await import('@duckdb/node-api')
  const { default: bindings } = await import('@duckdb/node-bindings')
  const { default: accessors } = await import('@duckdb/node-api/lib/vectors/dataAccessors.js')
  Object.assign(accessors, { textDecoder: new TextDecoder('utf-8', { ignoreBOM: true }) })
  nameEntries(library)
  return { library, bindings }
}

/** Names the entries of structs without names, as `list_zip` and `row` return, by position: the client keeps entries by name, so only the last one would remain. */
function nameEntries({ DuckDBStructLogicalType: { prototype } }: Library): void {
  const { entryName } = prototype
  prototype.entryName = function (index) {
    return entryName.call(this, index) || String(index + 1)
  }
}
