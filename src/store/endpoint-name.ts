import { sql } from 'kysely'

/**
 * The name of an endpoint in everything that refers to it: the one that its account gave it, or its label and region. For queries
 * that join the table `endpoints`; null if the join finds none.
 */
export const endpointName = sql<string>`coalesce(endpoints.name, endpoints.label || '.' || endpoints.region)`
