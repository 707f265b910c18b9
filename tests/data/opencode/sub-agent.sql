CREATE TABLE `session` (
          `id` text PRIMARY KEY,
          `project_id` text NOT NULL,
          `workspace_id` text,
          `parent_id` text,
          `slug` text NOT NULL,
          `directory` text NOT NULL,
          `path` text,
          `title` text NOT NULL,
          `version` text NOT NULL,
          `share_url` text,
          `summary_additions` integer,
          `summary_deletions` integer,
          `summary_files` integer,
          `summary_diffs` text,
          `metadata` text,
          `cost` real DEFAULT 0 NOT NULL,
          `tokens_input` integer DEFAULT 0 NOT NULL,
          `tokens_output` integer DEFAULT 0 NOT NULL,
          `tokens_reasoning` integer DEFAULT 0 NOT NULL,
          `tokens_cache_read` integer DEFAULT 0 NOT NULL,
          `tokens_cache_write` integer DEFAULT 0 NOT NULL,
          `revert` text,
          `permission` text,
          `agent` text,
          `model` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_compacting` integer,
          `time_archived` integer,
          CONSTRAINT `fk_session_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
insert into session values('ses_de5b57a2effedTHFZ5eiBajhL7','global',null,null,'quiet-orchid','/home/dev/proj','home/dev/proj','An aside.','1.18.33',null,0,0,0,null,null,0.009,2000,200,0,0,0,null,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','build','{"id":"claude-sonnet-4-5","providerID":"anthropic","variant":"default"}',1795737421265,1795737425461,null,null);
insert into session values('ses_de5b56e52ffe0GwC43Pni8Z1nq','global',null,'ses_de5b57a2effedTHFZ5eiBajhL7','hidden-wolf','/home/dev/proj','home/dev/proj','look (@general subagent)','1.18.33',null,0,0,0,null,null,0.009,2000,200,0,0,0,null,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"},{"permission":"task","pattern":"*","action":"deny"}]','general','{"id":"claude-sonnet-4-5","providerID":"anthropic","variant":"default"}',1795737424301,1795737425170,null,null);
insert into message values('msg_21a4a8667001SpVHMU8COl7Ndp','ses_de5b57a2effedTHFZ5eiBajhL7',1795737421415,1795737425210,'{"role":"user","time":{"created":1795737421415},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"},"summary":{"diffs":[]}}');
insert into message values('msg_21a4a8a9b001wTOu1Wl0zyYrWg','ses_de5b57a2effedTHFZ5eiBajhL7',1795737422492,1795737425148,'{"parentID":"msg_21a4a8667001SpVHMU8COl7Ndp","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/proj","root":"/"},"cost":0.0045,"tokens":{"total":1100,"input":1000,"output":100,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"claude-sonnet-4-5","providerID":"anthropic","time":{"created":1795737422492,"completed":1795737425146},"finish":"tool-calls"}');
insert into message values('msg_21a4a91c1001iDGGqgh9LY0N30','ses_de5b56e52ffe0GwC43Pni8Z1nq',1795737424322,1795737425179,'{"role":"user","time":{"created":1795737424322},"agent":"general","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"},"summary":{"diffs":[]}}');
insert into message values('msg_21a4a92040013dRiHxVBxcHWnz','ses_de5b56e52ffe0GwC43Pni8Z1nq',1795737424388,1795737424839,'{"parentID":"msg_21a4a91c1001iDGGqgh9LY0N30","role":"assistant","mode":"general","agent":"general","path":{"cwd":"/home/dev/proj","root":"/"},"cost":0.0045,"tokens":{"total":1100,"input":1000,"output":100,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"claude-sonnet-4-5","providerID":"anthropic","time":{"created":1795737424388,"completed":1795737424833},"finish":"tool-calls"}');
insert into message values('msg_21a4a93cd001pd0oBU0y0l3s8c','ses_de5b56e52ffe0GwC43Pni8Z1nq',1795737424845,1795737425096,'{"parentID":"msg_21a4a91c1001iDGGqgh9LY0N30","role":"assistant","mode":"general","agent":"general","path":{"cwd":"/home/dev/proj","root":"/"},"cost":0.0045,"tokens":{"total":1100,"input":1000,"output":100,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"claude-sonnet-4-5","providerID":"anthropic","time":{"created":1795737424845,"completed":1795737425095},"finish":"stop"}');
insert into message values('msg_21a4a9500001xf6ROoNlL78vs6','ses_de5b57a2effedTHFZ5eiBajhL7',1795737425152,1795737425436,'{"parentID":"msg_21a4a8667001SpVHMU8COl7Ndp","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/proj","root":"/"},"cost":0.0045,"tokens":{"total":1100,"input":1000,"output":100,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"claude-sonnet-4-5","providerID":"anthropic","time":{"created":1795737425152,"completed":1795737425435},"finish":"stop"}');
