/** Writes a set-up as YAML that people like to read and edit. */
import { Document, isMap, isSeq, Scalar, visit } from 'yaml'
import type { Definition } from '#model/definition.ts'

const options = { lineWidth: 0, indentSeq: true, flowCollectionPadding: true } as const

/** Returns a document, with a comment of one line above it. */
export function printSetup(setup: object, comment: string): string {
  const document = new Document(setup)
  layOut(document)
  if (isMap(document.contents))
    for (const pair of document.contents.items.slice(1)) if (pair.key instanceof Scalar) pair.key.spaceBefore = true
  document.commentBefore = ` ${comment}`
  return document.toString(options)
}

/** Returns a definition as it stands in a file. */
export function printDefinition(definition: Definition): string {
  const document = new Document(definition)
  layOut(document)
  return document.toString(options)
}

/** Columns and bindings are short: a line for each. */
function layOut(document: Document): void {
  visit(document, {
    Pair(_, { key, value }) {
      const name = key instanceof Scalar ? key.value : undefined
      if ((name === 'columns' || name === 'bindings') && isSeq(value))
        for (const item of value.items) if (isMap(item)) item.flow = true
      if (isSeq(value) && value.items.every((item) => item instanceof Scalar)) value.flow = true
    },
    Scalar(_, scalar) {
      // A block of text would read a carriage return as a line break.
      if (typeof scalar.value === 'string' && /[\r\u0085\u2028\u2029]/.test(scalar.value)) scalar.type = Scalar.QUOTE_DOUBLE
    },
  })
}
