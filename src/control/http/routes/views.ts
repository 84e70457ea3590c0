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
import { ById, Empty } from './parameters.ts'
import { type ResourceApp, resource } from './resource.ts'

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
  return resource('Views', (app) => {
    addVersions(app, views)
    addQuality(app, views, dlqFiles)
  })
}

function addVersions(app: ResourceApp, views: Views): void {
  app.get(
    '/views',
    {
      config: { scope: 'any' },
      schema: {
        operationId: 'listViews',
        summary: 'List view versions, newest first',
        querystring: ListQuery,
        response: { 200: pageOf(ViewWithUsage) },
      },
    },
    (request) => views.list(request.principal, request.query),
  )

  app.get(
    '/view-metrics',
    {
      config: { scope: 'metrics' },
      schema: {
        operationId: 'listViewMetrics',
        summary: 'List the metrics of published view versions, newest first',
        querystring: PageQuery,
        response: { 200: pageOf(Metrics) },
      },
    },
    (request) => views.listMetrics(request.principal, request.query),
  )

  app.get(
    '/views/:id',
    {
      config: { scope: 'metrics' },
      schema: {
        operationId: 'getView',
        summary: 'Get a view with its versions and endpoints',
        params: ById,
        response: { 200: ViewDetail },
      },
    },
    (request) => views.get(request.principal, request.params.id),
  )

  app.delete(
    '/views/:id',
    {
      config: { scope: 'admin' },
      schema: {
        operationId: 'deleteView',
        summary: 'Delete a draft',
        params: ById,
        response: { 204: Empty, 422: notDraft },
      },
    },
    (request) => views.remove(request.principal, request.params.id),
  )

  app.post(
    '/views/:id/versions',
    {
      config: { scope: 'admin' },
      schema: {
        operationId: 'createViewVersion',
        summary: 'Create the next version of a view, as a draft',
        params: ById,
        body: CreateViewVersion.optional(),
        response: { 201: View },
      },
    },
    (request) => views.createVersion(request.principal, request.params.id, request.body ?? {}),
  )

  app.post(
    '/views/:id/archive',
    {
      config: { scope: 'admin' },
      schema: {
        operationId: 'archiveView',
        summary: 'Archive a published view: it is detached from every endpoint and cannot be attached again',
        params: ById,
        response: { 200: View, 422: problem('the view is not published') },
      },
    },
    (request) => views.archive(request.principal, request.params.id),
  )
}

function addQuality(app: ResourceApp, views: Views, dlqFiles: DlqFilesService): void {
  app.get(
    '/views/:id/dlq-files',
    {
      config: { scope: 'metrics' },
      schema: {
        operationId: 'listDlqFiles',
        summary: 'List the files of rows that a view rejected, each with a download URL',
        params: ById,
        querystring: DlqFilesQuery,
        response: { 200: DlqFiles },
      },
    },
    (request) => dlqFiles.list(request.principal, request.params.id, request.query),
  )

  app.get(
    '/views/:id/metrics',
    {
      config: { scope: 'metrics' },
      schema: {
        operationId: 'getViewMetrics',
        summary: 'Get the metrics of a view, over 24 hours and in total',
        params: ById,
        querystring: MetricsQuery,
        response: { 200: Metrics },
      },
    },
    (request) => views.metrics(request.principal, request.params.id, request.query.detail),
  )
}
