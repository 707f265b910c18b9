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
insert into session values('ses_df44c4b06ffe18vqmhPOQfTHjg','global',null,null,'happy-wolf','/home/dev/proj','home/dev/proj','All done.','1.18.33',null,0,0,0,null,null,0.00666,1800,80,0,200,0,null,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','build','{"id":"claude-sonnet-4-5","providerID":"scripted","variant":"default"}',1795492656377,1795492671761,null,null);
insert into message values('msg_20bb3b7e90016yOVnDshDx2vAk','ses_df44c4b06ffe18vqmhPOQfTHjg',1795492657129,1795492671321,'{"role":"user","time":{"created":1795492657129},"agent":"build","model":{"providerID":"scripted","modelID":"claude-sonnet-4-5"},"summary":{"diffs":[]}}');
insert into message values('msg_20bb3cd9e001v8GduQu9f5prEn','ses_df44c4b06ffe18vqmhPOQfTHjg',1795492662686,1795492671089,'{"parentID":"msg_20bb3b7e90016yOVnDshDx2vAk","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/proj","root":"/"},"cost":0.00333,"tokens":{"total":1040,"input":900,"output":40,"reasoning":0,"cache":{"write":0,"read":100}},"modelID":"claude-sonnet-4-5","providerID":"scripted","time":{"created":1795492662686,"completed":1795492671059},"finish":"tool-calls"}');
insert into message values('msg_20bb3ee9b001styRKCzoY5wbCL','ses_df44c4b06ffe18vqmhPOQfTHjg',1795492671131,1795492671551,'{"parentID":"msg_20bb3b7e90016yOVnDshDx2vAk","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/proj","root":"/"},"cost":0.00333,"tokens":{"total":1040,"input":900,"output":40,"reasoning":0,"cache":{"write":0,"read":100}},"modelID":"claude-sonnet-4-5","providerID":"scripted","time":{"created":1795492671131,"completed":1795492671530},"finish":"stop"}');
