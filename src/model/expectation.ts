/**
 * Says in words what a part of the input must be, with an example: `a whole number from 1 to 200`, `50`.
 *
 * Reads the JSON Schema of the input, the same that describes the API, so that messages and the description agree.
 */
import { z } from 'zod'

type JsonSchema = {
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, JsonSchema>>
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly JsonSchema[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: JsonSchema | boolean
  readonly items?: JsonSchema
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly default?: unknown
  readonly examples?: readonly unknown[]
}

const known = new WeakMap<z.ZodType, Expectation>()

export class Expectation {
  readonly #schema: JsonSchema
  readonly #defs: Readonly<Record<string, JsonSchema>>

  private constructor(schema: JsonSchema, defs: Readonly<Record<string, JsonSchema>>) {
    this.#defs = defs
    this.#schema = schema.$ref === undefined ? schema : (defs[schema.$ref.slice('#/$defs/'.length)] ?? {})
  }

  static of(schema: z.ZodType): Expectation {
    const cached = known.get(schema)
    if (cached !== undefined) return cached
    const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema
    const expectation = new Expectation(json, json.$defs ?? {})
    known.set(schema, expectation)
    return expectation
  }

  /** The field of an object, or the entry of a list; undefined if there is none. */
  part(key: PropertyKey): Expectation | undefined {
    const { properties, additionalProperties, items } = this.#schema
    const own = typeof key === 'number' ? items : properties?.[String(key)]
    const part = own ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
    return part === undefined ? this.#first((choice) => choice.part(key)) : this.#with(part)
  }

  /** One of several forms that the input may have. */
  choice(index: number): Expectation | undefined {
    return this.#choices[index]
  }

  /** Names of the fields of an object. */
  get fields(): readonly string[] {
    const { properties } = this.#schema
    return properties === undefined
      ? (this.#first(({ fields }) => (fields.length > 0 ? fields : undefined)) ?? [])
      : Object.keys(properties)
  }

  /** A noun phrase. */
  get words(): string {
    const schema = this.#schema
    const { type, format, minimum, maximum } = schema
    if (this.#choices.length > 0) return this.#choices.map(({ words }) => words).join(' or ')
    if (schema.const !== undefined) return String(schema.const)
    if (schema.enum !== undefined) return schema.enum.length === 1 ? String(schema.enum[0]) : `one of ${schema.enum.join(', ')}`
    switch (type) {
      case 'string':
        if (format === 'uuid') return 'an id (a UUID)'
        if (format === 'uri') return 'a URL'
        if (format === 'date-time') return 'a time in ISO 8601 with Z or an offset'
        return `text${counted(schema.minLength, schema.maxLength, 'characters')}`
      case 'integer':
      case 'number':
        return `a ${type === 'integer' ? 'whole number' : 'number'}${between(minimum, maximum)}`
      case 'boolean':
        return 'true or false'
      case 'array':
        return `a list${counted(schema.minItems, schema.maxItems, 'entries')}`
      case 'object':
        return 'an object'
      case 'null':
        return 'null'
      default:
        return 'another value'
    }
  }

  /** A value that is accepted; undefined if none is known. */
  get example(): unknown {
    const { examples, enum: values, default: fallback, type, properties, required = [], items, minimum } = this.#schema
    const given = examples?.[0] ?? values?.[0] ?? this.#schema.const ?? fallback ?? this.#first(({ example }) => example)
    if (given !== undefined) return given
    if (type === 'boolean') return true
    if (type === 'integer') return minimum === undefined || minimum < 0 ? 1 : minimum
    if (type === 'array' && items !== undefined) {
      const entry = this.#with(items).example
      return entry === undefined ? undefined : [entry]
    }
    if (type !== 'object' || properties === undefined) return undefined
    const fields = required.map((name) => [name, this.part(name)?.example] as const)
    return fields.every(([, value]) => value !== undefined) ? Object.fromEntries(fields) : undefined
  }

  get #choices(): readonly Expectation[] {
    const { anyOf, type } = this.#schema
    const choices = typeof type === 'object' ? type.map((each) => ({ ...this.#schema, type: each })) : anyOf
    return (choices ?? []).map((choice) => this.#with(choice))
  }

  #first<T>(find: (choice: Expectation) => T | undefined): T | undefined {
    for (const choice of this.#choices) {
      const found = find(choice)
      if (found !== undefined) return found
    }
    return undefined
  }

  #with(schema: JsonSchema): Expectation {
    return new Expectation(schema, this.#defs)
  }
}

function counted(min = 0, max = Number.POSITIVE_INFINITY, what: string): string {
  if (max === Number.POSITIVE_INFINITY) return min === 0 ? '' : min === 1 ? ' that is not empty' : ` of at least ${min} ${what}`
  if (min === max) return ` of ${min} ${what}`
  return min === 0 ? ` of at most ${max} ${what}` : ` of ${min} to ${max} ${what}`
}

function between(min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER): string {
  if (max >= Number.MAX_SAFE_INTEGER) return min <= Number.MIN_SAFE_INTEGER ? '' : `, ${min} or more`
  return min <= Number.MIN_SAFE_INTEGER ? `, ${max} or less` : ` from ${min} to ${max}`
}
