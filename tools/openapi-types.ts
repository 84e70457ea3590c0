/**
 * TypeScript types of the API from its description, in the form that openapi-fetch reads.
 *
 * The generators on npm need the compiler of TypeScript 5 as a library; this program has TypeScript 7.
 */

/** A JSON Schema as our description has them: see the keywords in `typeOf`. */
export type Schema = {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly maximum?: number
  readonly description?: string
}

type Body = { readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>; readonly required?: boolean }
export type Parameter = { readonly name: string; readonly in: string; readonly required?: boolean; readonly schema: Schema }
export type Operation = {
  readonly operationId: string
  readonly 'x-scope': string
  readonly summary?: string
  readonly description?: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: Body
  readonly responses: Readonly<Record<string, Body>>
}
export type Description = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

export const head = '/** Written by `npm run openapi` from openapi/openapi.json: change nothing here. */\n'

export const methods = ['get', 'put', 'post', 'delete', 'patch'] as const

export function typesOf({ paths, components }: Description): string {
  const schemas = Object.entries(components.schemas).map(([name, schema]) => member(name, typeOf(schema), true))
  const routes = Object.entries(paths).map(([path, operations]) => {
    const known = methods.map((method) => {
      const operation = operations[method]
      return operation === undefined
        ? member(method, 'never', false)
        : `${comment(operation.summary)}${member(method, operationType(operation), true)}`
    })
    return member(path, `{\n${known.join('')}}`, true)
  })
  const names = "export type Schemas = components['schemas']"
  return `${head}export type components = {\nschemas: {\n${schemas.join('')}}\n}\n\n${names}\n\nexport type paths = {\n${routes.join('')}}\n`
}

function operationType({ parameters = [], requestBody, responses }: Operation): string {
  const groups = ['query', 'header', 'path'].map((place) => {
    const list = parameters.filter((parameter) => parameter.in === place)
    if (list.length === 0) return member(place, 'never', false)
    return member(
      place,
      fieldsOf(list),
      list.some(({ required }) => required),
    )
  })
  const answers = Object.entries(responses).map(([status, body]) => `${status}: ${bodyType(body)}\n`)
  const request =
    requestBody === undefined
      ? member('requestBody', 'never', false)
      : member('requestBody', bodyType(requestBody), requestBody.required ?? false)
  return `{\nparameters: {\n${groups.join('')}}\n${request}responses: {\n${answers.join('')}}\n}`
}

export function fieldsOf(parameters: readonly Parameter[]): string {
  return `{\n${parameters.map(({ name, schema, required = false }) => member(name, typeOf(schema), required)).join('')}}`
}

function bodyType({ content = {} }: Body): string {
  const types = Object.entries(content).map(([type, { schema }]) => member(type, typeOf(schema ?? {}), true))
  return `{ content: ${types.length === 0 ? 'Record<never, never>' : `{\n${types.join('')}}`} }`
}

export function typeOf(schema: Schema): string {
  const { $ref, type, enum: values, anyOf, oneOf, allOf } = schema
  if ($ref !== undefined) return `components['schemas'][${JSON.stringify($ref.slice($ref.lastIndexOf('/') + 1))}]`
  if ('const' in schema) return JSON.stringify(schema.const)
  if (values !== undefined) return values.map((value) => JSON.stringify(value)).join(' | ')
  const choices = anyOf ?? oneOf
  if (choices !== undefined) return [...new Set(choices.map(typeOf))].join(' | ')
  if (type === undefined) return allOf === undefined ? 'unknown' : allOf.map((part) => `(${typeOf(part)})`).join(' & ')
  if (typeof type !== 'string') return type.map((each) => typeOf({ ...schema, type: each })).join(' | ')
  if (type === 'array') return `(${typeOf(schema.items ?? {})})[]`
  if (type === 'object') return objectType(schema)
  return type === 'integer' ? 'number' : type
}

function objectType({ properties = {}, required = [], additionalProperties }: Schema): string {
  const fields = Object.entries(properties).map(
    ([name, schema]) => `${comment(schema.description)}${member(name, typeOf(schema), required.includes(name))}`,
  )
  if (fields.length > 0) return `{\n${fields.join('')}}`
  return `Readonly<Record<string, ${typeof additionalProperties === 'object' ? typeOf(additionalProperties) : 'unknown'}>>`
}

export function member(name: string, type: string, isRequired: boolean): string {
  const key = /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name)
  return `readonly ${key}${isRequired ? '' : '?'}: ${type}${isRequired || type === 'never' ? '' : ' | undefined'}\n`
}

export function comment(text: string | undefined): string {
  return text === undefined ? '' : `/** ${text.replaceAll('*/', '* /').replaceAll('\n', ' ')} */\n`
}
