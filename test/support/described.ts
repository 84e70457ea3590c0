/** Checks responses against the OpenAPI description that the service publishes: status, content type and every value of the body. */
import { expect } from 'vitest'
import { z } from 'zod'

type Response = { readonly content?: Record<string, { readonly schema: object }> }
type Description = {
  readonly paths: Record<string, Record<string, { readonly operationId: string; readonly responses: Record<string, Response> }>>
  readonly components: { readonly schemas: Record<string, unknown> }
}

/** Every control publishes the same one, and takes a tenth of a second of a processor to make it. */
let published: Promise<Description> | undefined
const validators = new Map<string, z.ZodType>()

export async function describedBy(
  url: string,
  method: string,
  path: string,
  answer: { readonly status: number; readonly headers: Headers; readonly body: unknown },
): Promise<void> {
  if (!path.startsWith('/v1/')) return
  published ??= fetchDescription(url)
  const description = await published
  const operation = findOperation(description, method, path)
  if (operation === undefined) return
  const { operationId, responses } = operation
  const response = responses[answer.status]
  expect(response, `${operationId} answers an undescribed ${answer.status}: ${JSON.stringify(answer.body)}`).toBeDefined()
  if (response?.content === undefined) {
    expect(answer.body, `the body of ${operationId}`).toBe('')
    return
  }
  const type = answer.headers.get('content-type')?.split(';')[0] ?? ''
  const content = response.content[type]
  expect(content, `${operationId} answers ${answer.status} as an undescribed ${type}`).toBeDefined()
  if (content === undefined) return
  const key = `${operationId} ${answer.status}`
  const validator = validators.get(key) ?? toValidator(content.schema, description)
  validators.set(key, validator)
  const { error } = validator.safeParse(answer.body)
  expect(error, `${key} differs from its description: ${JSON.stringify(answer.body)}`).toBeUndefined()
}

async function fetchDescription(url: string): Promise<Description> {
  try {
    const response = await fetch(`${url}/openapi/openapi.json`)
    if (!response.ok) throw new Error(`${url}/openapi/openapi.json returned HTTP ${response.status}`)
    return (await response.json()) as Description
  } catch (error) {
    // Control is away. The next one may be there.
    published = undefined
    throw error
  }
}

function findOperation({ paths }: Description, method: string, path: string) {
  const [bare = ''] = path.split('?')
  for (const [template, operations] of Object.entries(paths)) {
    const operation = operations[method.toLowerCase()]
    if (operation !== undefined && new RegExp(`^${template.replace(/\{[^}]+\}/g, '[^/]+')}$`).test(bare)) return operation
  }
  return undefined
}

/** Resolves references within the description. */
export function toValidator(schema: object, { components }: Pick<Description, 'components'>): z.ZodType {
  const $defs = strictSchemas.get(components) ?? strict(components.schemas)
  strictSchemas.set(components, $defs)
  return z.fromJSONSchema({ ...strict(schema), $defs } as Parameters<typeof z.fromJSONSchema>[0])
}

const strictSchemas = new WeakMap<Description['components'], object>()

function strict(schema: object): object {
  const text = JSON.stringify(schema).replaceAll('#/components/schemas/', '#/$defs/')
  // A default means that requests may omit the field. A response must contain it.
  return JSON.parse(text, (key, value) => (key === 'default' ? undefined : value))
}
