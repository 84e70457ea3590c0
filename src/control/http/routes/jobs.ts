import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { Compact } from '#model/compaction.ts'
import { Backfill, Job, JobDetail, JobsQuery, Redrive } from '#model/job.ts'
import { pageOf } from '#model/page.ts'
import type { Compactions } from '../../resources/compactions.ts'
import type { Jobs } from '../../resources/jobs.ts'
import { problem } from '../openapi/openapi.ts'
import { ById, Empty } from './parameters.ts'
import { type ResourceApp, resource } from './resource.ts'

const jobConflict = problem(
  'a job with this version is running or paused on the endpoint, or the account has too many unfinished jobs',
)
const jobRejected = problem('the view is not published, the account has no such endpoint, or the request is not valid')
const finished = problem('the job is finished')

export function jobRoutes(jobs: Jobs, compactions: Compactions): FastifyPluginCallbackZod {
  return resource('Jobs', (app) => {
    app.post(
      '/views/:id/backfill',
      {
        config: { scope: 'admin' },
        schema: {
          operationId: 'backfillView',
          summary: 'Run a published version over segments that were committed without it',
          params: ById,
          body: Backfill,
          response: { 202: Job, 409: jobConflict, 422: jobRejected },
        },
      },
      (request) => jobs.backfill(request.principal, request.params.id, request.body),
    )

    app.post(
      '/views/:id/redrive',
      {
        config: { scope: 'admin' },
        schema: {
          operationId: 'redriveView',
          summary: 'Run a published version over the rows that another version of the view rejected',
          params: ById,
          body: Redrive,
          response: { 202: Job, 409: jobConflict, 422: jobRejected },
        },
      },
      (request) => jobs.redrive(request.principal, request.params.id, request.body),
    )

    app.post(
      '/endpoints/:id/compact',
      {
        config: { scope: 'admin' },
        schema: {
          operationId: 'compactEndpoint',
          summary: 'Merge small Parquet files of closed hours or days, and remove those that were merged long enough ago',
          params: ById,
          body: Compact,
          response: {
            202: Job,
            204: Empty.meta({ description: 'nothing to merge' }),
            409: problem('a compaction is running or paused on the endpoint'),
          },
        },
      },
      async (request, reply) => {
        const job = await compactions.start(request.principal, request.params.id, request.body)
        return job === undefined ? reply.code(204).send() : reply.code(202).send(job)
      },
    )
    addJobs(app, jobs)
  })
}

function addJobs(app: ResourceApp, jobs: Jobs): void {
  app.get(
    '/jobs',
    {
      config: { scope: 'metrics' },
      schema: {
        operationId: 'listJobs',
        summary: 'List backfills, re-drives and compactions, newest first',
        querystring: JobsQuery,
        response: { 200: pageOf(Job) },
      },
    },
    (request) => jobs.list(request.principal, request.query),
  )

  app.get(
    '/jobs/:id',
    {
      config: { scope: 'metrics' },
      schema: {
        operationId: 'getJob',
        summary: 'Get a job with its progress',
        params: ById,
        response: { 200: JobDetail },
      },
    },
    (request) => jobs.get(request.principal, request.params.id),
  )

  for (const { verb, status, summary } of transitions) {
    app.post(
      `/jobs/:id/${verb}`,
      {
        config: { scope: 'admin' },
        schema: { operationId: `${verb}Job`, summary, params: ById, response: { 200: Job, 422: finished } },
      },
      (request) => jobs.setStatus(request.principal, request.params.id, status),
    )
  }
}

const transitions = [
  { verb: 'pause', status: 'paused', summary: 'Pause a job: segments in progress are finished, and no others are started' },
  { verb: 'resume', status: 'running', summary: 'Resume a job' },
  { verb: 'cancel', status: 'canceled', summary: 'Cancel a job: files it has already written stay' },
] as const
