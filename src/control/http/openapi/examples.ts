/**
 * An example of every request and every response in the description, but errors (problems.ts).
 *
 * Law: the service would accept or return each of them. The contract tests check them against the schemas.
 */
import type { RouteScope } from '../requests/authenticate.ts'
import { accountsExamples } from './examples/accounts.ts'
import { bindingsExamples } from './examples/bindings.ts'
import { dataQualityExamples } from './examples/data-quality.ts'
import { destinationsExamples } from './examples/destinations.ts'
import { endpointsExamples } from './examples/endpoints.ts'
import { jobsExamples } from './examples/jobs.ts'
import { keysExamples } from './examples/keys.ts'
import { lossesExamples } from './examples/losses.ts'
import { nodesExamples } from './examples/nodes.ts'
import { peopleExamples } from './examples/people.ts'
import { queriesExamples } from './examples/queries.ts'
import { secretsExamples } from './examples/secrets.ts'
import { seriesExamples } from './examples/series.ts'
import { shadowsExamples } from './examples/shadows.ts'
import type { Examples } from './examples/shared.ts'
import { viewsExamples } from './examples/views.ts'
import { referToProblems } from './problems.ts'

const examples: Examples = {
  ...accountsExamples,
  ...keysExamples,
  ...secretsExamples,
  ...destinationsExamples,
  ...endpointsExamples,
  ...viewsExamples,
  ...bindingsExamples,
  ...shadowsExamples,
  ...dataQualityExamples,
  ...jobsExamples,
  ...lossesExamples,
  ...queriesExamples,
  ...seriesExamples,
  ...peopleExamples,
  ...nodesExamples,
}

type Content = Record<string, { schema?: unknown; example?: unknown; examples?: Record<string, { readonly $ref: string }> }>
export type DescribedOperation = {
  readonly operationId: string
  readonly 'x-scope': RouteScope
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
}

/** Adds the examples to an operation of the OpenAPI description. */
export function addExamples({ operationId, requestBody, responses }: DescribedOperation, isChange: boolean): void {
  const { request, response } = examples[operationId] ?? {}
  for (const media of Object.values(requestBody?.content ?? {})) media.example = request
  for (const [status, { content = {} }] of Object.entries(responses)) {
    for (const media of Object.values(content)) {
      if (Number(status) < 400) media.example = response
      else {
        media.examples = referToProblems(Number(status), { operationId, isChange })
      }
    }
  }
}
