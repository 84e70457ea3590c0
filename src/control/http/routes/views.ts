import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { DlqFiles, DlqFilesQuery } from '#model/dlq-file.ts'
import { Id } from '#model/id.ts'
import { PageQuery, pageOf } from '#model/page.ts'
import { lineOfText } from '#model/text.ts'
import { CreateViewVersion, View, ViewDetail, ViewStatus, ViewWithUsage } from '#model/view.ts'
import { ViewMetrics } from '#model/view-metrics.ts'
import type { DlqFiles as DlqFilesService } from '../../resources/dlq-files.ts'
import type { Views } from '../../resources/views.ts'
import { problem } from '../openapi/openapi.ts'
import { type AddOperation, Empty, resource } from './resource.ts'

const notDraft = problem('the view is not a draft, or the request is not valid')

/** `tag=a&tag=b`: form style, exploded. A single tag is parsed as a string. */
const TagFilter = z.preprocess(
  (given) => (typeof given === 'string' ? [given] : given),
  z
    .array(lineOfText(64).meta({ examples: ['sales'] }))
    .max(32)
    .optional(),
)
const ListQuery = PageQuery.extend({
  status: z.enum([...ViewStatus.options, 'all']).default('published'),
  name: lineOfText(64)
    .optional()
    .meta({ description: 'exact match', examples: ['orders'] }),
  tag: TagFilter.meta({ description: 'views that have all of these tags' }),
})

const MetricsQuery = z.strictObject({
  detail: z.enum(['columns']).optional().meta({ description: 'adds `columns` and `unmapped_paths`' }),
})
const Metrics = ViewMetrics.extend({ view_id: Id, view_name: z.string(), view_version: z.int() })

export type ViewRoutesOptions = {
  readonly views: Views
  readonly dlqFiles: DlqFilesService
}

export function viewRoutes({ views, dlqFiles }: ViewRoutesOptions): FastifyPluginCallbackZod {
  return resource('Views', (operation) => {
    addVersions(operation, views)
    addQuality(operation, views, dlqFiles)
  })
}

function addVersions(operation: AddOperation, views: Views): void {
  operation('GET /views', 'listViews', 'any', {
    summary: 'List view versions, newest first',
    query: ListQuery,
    response: { 200: pageOf(ViewWithUsage) },
    run: (request) => views.list(request.principal, request.query),
  })

  operation('GET /view-metrics', 'listViewMetrics', 'metrics', {
    summary: 'List the metrics of published view versions, newest first',
    query: PageQuery,
    response: { 200: pageOf(Metrics) },
    run: (request) => views.listMetrics(request.principal, request.query),
  })

  operation('GET /views/:id', 'getView', 'metrics', {
    summary: 'Get a view with its versions and endpoints',
    response: { 200: ViewDetail },
    run: (request) => views.get(request.principal, request.params.id),
  })

  operation('DELETE /views/:id', 'deleteView', 'admin', {
    summary: 'Delete a draft',
    response: { 204: Empty, 409: problem('the draft shadows an endpoint'), 422: notDraft },
    run: (request) => views.remove(request.principal, request.params.id),
  })

  operation('POST /views/:id/versions', 'createViewVersion', 'admin', {
    summary: 'Create the next version of a view, as a draft',
    body: CreateViewVersion.optional(),
    response: { 201: View },
    run: (request) => views.createVersion(request.principal, request.params.id, request.body ?? {}),
  })

  operation('POST /views/:id/archive', 'archiveView', 'admin', {
    summary: 'Archive a published view: it is detached from every endpoint and cannot be attached again',
    response: { 200: View, 422: problem('the view is not published') },
    run: (request) => views.archive(request.principal, request.params.id),
  })
}

function addQuality(operation: AddOperation, views: Views, dlqFiles: DlqFilesService): void {
  operation('GET /views/:id/dlq-files', 'listDlqFiles', 'metrics', {
    summary: 'List the files of rows that a view rejected, each with a download URL',
    query: DlqFilesQuery,
    response: { 200: DlqFiles },
    run: (request) => dlqFiles.list(request.principal, request.params.id, request.query),
  })

  operation('GET /views/:id/metrics', 'getViewMetrics', 'metrics', {
    summary: 'Get the metrics of a view, over 24 hours and in total',
    query: MetricsQuery,
    response: { 200: Metrics },
    run: (request) => views.metrics(request.principal, request.params.id, request.query.detail),
  })
}
