/**
 * Operations that check or try out definitions.
 *
 * Law: this process does not look into their bodies. Another one parses and checks them, which can be killed, so that no content holds the
 * event loop.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import type { z } from 'zod'
import { comparisonLimits, definitionLimits, previewLimits } from '#model/limits.ts'
import { PreviewRequest, PreviewResult } from '#model/preview.ts'
import { Suggestion, SuggestRequest } from '#model/suggestion.ts'
import { ChangeView, CheckedView, CreateView } from '#model/view.ts'
import { CompareView, ViewComparison } from '#model/view-comparison.ts'
import type { Previews } from '../../resources/previews.ts'
import type { Suggestions } from '../../resources/suggestions.ts'
import type { ViewComparisons } from '../../resources/view-comparisons.ts'
import type { Views } from '../../resources/views.ts'
import { problem } from '../openapi/openapi.ts'
import { validatorCompiler } from '../requests/problem.ts'
import { RequestShares } from '../requests/request-shares.ts'
import { sendJson, signalDisconnect } from './own-process.ts'
import { type AddOperation, resource } from './resource.ts'

const notDraft = problem('the view is not a draft, or the request is not valid')

export type DefinitionRoutesOptions = {
  readonly views: Views
  readonly previews: Previews
  readonly suggestions: Suggestions
  readonly comparisons: ViewComparisons
}

export function definitionRoutes({
  views,
  previews,
  suggestions,
  comparisons,
}: DefinitionRoutesOptions): FastifyPluginCallbackZod {
  return resource('Views', (operation, app) => {
    keepBodies(app)
    const shares = new RequestShares({ what: 'create, change or publish views', perAccountMax: definitionLimits.perAccountMax })

    operation('POST /views', 'createView', 'admin', {
      summary: 'Create a view, as a draft',
      body: CreateView,
      response: { 201: CheckedView },
      shares,
      run: (request, reply) => views.create(request.principal, bodyOf(request), signalDisconnect(reply)),
    })

    operation('PATCH /views/:id', 'changeView', 'admin', {
      summary: 'Change a draft',
      body: ChangeView,
      response: { 200: CheckedView, 422: notDraft },
      shares,
      run: (request, reply) => views.change(request.principal, request.params.id, bodyOf(request), signalDisconnect(reply)),
    })

    operation('POST /views/:id/publish', 'publishView', 'admin', {
      summary: 'Publish a draft: its definition can no longer change',
      response: { 200: CheckedView, 422: notDraft },
      shares,
      run: (request, reply) => views.publish(request.principal, request.params.id, signalDisconnect(reply)),
    })
    addTrials(operation, previews, suggestions)
    addComparison(operation, comparisons)
  })
}

/** Operations that save nothing. */
function addTrials(operation: AddOperation, previews: Previews, suggestions: Suggestions): void {
  const shares = new RequestShares({ what: 'run previews', perAccountMax: previewLimits.perAccountMax })

  operation('POST /views/preview', 'previewView', 'any', {
    summary: 'Try a definition on samples; nothing is saved',
    body: PreviewRequest,
    response: { 200: PreviewResult },
    bodyLimit: previewLimits.bodyBytesMax,
    shares,
    run: async (request, reply) =>
      sendJson(reply, await previews.preview(request.principal, bodyOf(request), signalDisconnect(reply))),
  })

  operation('POST /views/suggest', 'suggestView', 'any', {
    summary: 'Suggest a definition for samples, or for the data of an endpoint; nothing is saved',
    body: SuggestRequest,
    response: {
      200: Suggestion,
      403: problem('with `endpoint_id`: the access token lacks the scope metrics'),
      404: problem('the account has no such endpoint'),
    },
    bodyLimit: previewLimits.bodyBytesMax,
    shares,
    run: async (request, reply) =>
      sendJson(reply, await suggestions.suggest(request.principal, bodyOf(request), signalDisconnect(reply))),
  })
}

/** Its scope is `query`: the response has records. */
function addComparison(operation: AddOperation, comparisons: ViewComparisons): void {
  operation('POST /views/:id/compare', 'compareView', 'query', {
    summary: 'Compare a changed definition with the published one, over records of the last day; nothing is saved',
    body: CompareView.optional(),
    response: { 200: ViewComparison, 409: problem('the records cannot be read; `detail` says why, and what to do') },
    shares: new RequestShares({ what: 'compare views', perAccountMax: comparisonLimits.perAccountMax }),
    noStore: true,
    run: async (request, reply) => {
      const { principal, params } = request
      return sendJson(reply, await comparisons.compare(principal, params.id, bodyOf(request), signalDisconnect(reply)))
    },
  })
}

/** Passes the bytes of a body on. The schemas of bodies only describe them here. */
function keepBodies(
  app: Pick<FastifyInstance, 'removeAllContentTypeParsers' | 'addContentTypeParser' | 'setValidatorCompiler'>,
): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (_request: FastifyRequest, body: Buffer) => body)
  app.setValidatorCompiler<z.ZodType>((route) =>
    route.httpPart === 'body' ? (value: unknown) => ({ value }) : validatorCompiler(route),
  )
}

function bodyOf({ body }: { readonly body: unknown }): Uint8Array {
  return body instanceof Uint8Array ? body : new Uint8Array()
}
